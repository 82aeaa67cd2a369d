// The API reference: every operation of /v1/openapi.json by its tag, each with a form that calls this server.
const make = (tag, props = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), props);
  element.append(...children);
  return element;
};

const resolve = (schema, document) =>
  schema?.$ref ? document.components.schemas[schema.$ref.split('/').pop()] : schema;

const example = (schema, document, depth = 0) => {
  const found = resolve(schema, document) ?? {};
  if (found.default !== undefined) return found.default;
  if (found.enum) return found.enum[0];
  if (found.anyOf) return example(found.anyOf[0], document, depth);
  if (found.type === 'object' && depth < 3) {
    const wanted = found.required ?? [];
    return Object.fromEntries(wanted.map((name) => [name, example(found.properties?.[name], document, depth + 1)]));
  }
  return { string: '', integer: 1, number: 1, boolean: true, array: [], object: {} }[found.type] ?? null;
};

const field = (parameter) => {
  const input = make('input', { name: parameter.name, placeholder: parameter.schema?.type ?? '' });
  input.dataset.place = parameter.in;
  return make('tr', {},
    make('th', { scope: 'row' }, make('code', {}, parameter.name)),
    make('td', {}, parameter.in + (parameter.required ? ', required' : '')),
    make('td', {}, parameter.description ?? ''),
    make('td', {}, make('label', {}, input)));
};

const call = async (form, method, path, output) => {
  const query = new URLSearchParams();
  const headers = {};
  let target = path;
  for (const input of form.querySelectorAll('input[data-place]')) {
    if (!input.value) continue;
    if (input.dataset.place === 'path') target = target.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.dataset.place === 'query') query.set(input.name, input.value);
    else headers[input.name] = input.value;
  }
  const key = document.getElementById('key').value;
  if (key) headers.Authorization = `Bearer ${key}`;
  const body = form.querySelector('textarea')?.value || undefined;
  if (body) headers['Content-Type'] = 'application/json';
  if (path.endsWith('/events')) headers.Accept = 'application/json';
  const address = query.size ? `${target}?${query}` : target;
  try {
    const answer = await fetch(address, { method, headers, body });
    const text = await answer.text();
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* not JSON: as it is */ }
    output.textContent = `${answer.status} ${method} ${address}\n\n${shown}`;
  } catch (error) {
    output.textContent = `The server did not answer: ${error}`;
  }
};

const route = (document_, path, method, operation) => {
  const output = make('pre', { ariaLive: 'polite' }, 'Nothing called yet.');
  const form = make('form', { onsubmit: (event) => { event.preventDefault(); call(form, method, path, output); } });
  if (operation.parameters.length) {
    const rows = operation.parameters.map(field);
    form.append(make('table', {}, make('tbody', {}, ...rows)));
  }
  const sent = operation.requestBody?.content['application/json'];
  if (sent) {
    const text = JSON.stringify(sent.example ?? example(sent.schema, document_), null, 2);
    const label = operation.requestBody.required ? 'Body, required' : 'Body';
    form.append(make('label', {}, label, make('textarea', { value: text, spellcheck: false })));
    form.append(folded('Schema of the body', resolve(sent.schema, document_)));
  }
  form.append(make('button', { type: 'submit' }, `Call ${method}`));
  const scope = operation['x-scope'] ? `Needs the scope ${operation['x-scope']}.` : 'Needs no key.';
  return make('details', { className: 'route' },
    make('summary', {},
      make('span', { className: `method ${method}` }, method),
      make('code', {}, path),
      make('span', { className: 'muted' }, operation.summary)),
    make('p', {}, `${operation.description} ${scope}`), form, output, ...answers(operation, document_));
};

const folded = (title, value) =>
  make('details', {}, make('summary', {}, title), make('pre', {}, JSON.stringify(value, null, 2)));

// One line for each status, and below the example and the schema of the good answer.
const answers = (operation, document_) => {
  const rows = Object.entries(operation.responses).map(([status, answer]) =>
    make('tr', {},
      make('th', { scope: 'row' }, status),
      make('td', {}, answer.description),
      make('td', {}, ...schemaNames(answer).map((name) => make('code', {}, name)))));
  const shown = [make('h3', {}, 'Answers'), make('table', {}, make('tbody', {}, ...rows))];
  const good = Object.entries(operation.responses).find(([status]) => status.startsWith('2'));
  const json = good?.[1].content?.['application/json'];
  if (json?.example !== undefined) shown.push(folded('Example of the answer', json.example));
  if (json) shown.push(folded('Schema of the answer', resolve(json.schema, document_)));
  return shown;
};

const schemaNames = (answer) =>
  Object.entries(answer.content ?? {}).flatMap(([media, { schema }]) =>
    media === 'application/json' ? (schema.oneOf ?? [schema]).map(({ $ref }) => $ref?.split('/').pop() ?? 'JSON') : [media]);

const section = (document_, tag) => {
  const part = make('section', { id: tag.name.toLowerCase().replaceAll(' ', '-') },
    make('h2', {}, tag.name),
    make('p', {}, `${tag.description} `, make('a', { href: tag.externalDocs.url }, 'Read the guide')));
  for (const [path, methods] of Object.entries(document_.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      if (operation.tags.includes(tag.name)) part.append(route(document_, path, method.toUpperCase(), operation));
    }
  }
  return part;
};

const show = async () => {
  const description = await (await fetch('/v1/openapi.json')).json();
  document.getElementById('about').textContent = `${description.info.description} Version ${description.info.version}.`;
  const list = document.getElementById('routes');
  const parts = description.tags.map((tag) => section(description, tag));
  list.append(...parts);
  document.getElementById('tags').append(...parts.map((part) =>
    make('a', { href: `#${part.id}` }, part.querySelector('h2').textContent)));
  document.getElementById('find').addEventListener('input', (event) => {
    const word = event.target.value.toLowerCase();
    for (const part of parts) {
      const items = [...part.querySelectorAll(':scope > .route')];
      for (const item of items) item.hidden = !item.querySelector('summary').textContent.toLowerCase().includes(word);
      part.hidden = items.every((item) => item.hidden);
    }
  });
};

show().catch((error) => { document.getElementById('about').textContent = `The description could not be read: ${error}`; });
