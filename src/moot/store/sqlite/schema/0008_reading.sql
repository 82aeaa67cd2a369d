-- Takes no lock worth naming: new tables, nothing is rewritten. What was said before is found after
-- `moot db rebuild`.

-- DERIVED from the log. Events with words that are not in the index yet; the oldest come first.
CREATE TABLE text_queue (
  at       INTEGER NOT NULL,
  n        INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  source   TEXT,
  PRIMARY KEY (at, n, sequence)
) STRICT, WITHOUT ROWID;

-- DERIVED from the log. Where a text of the index stands: the log, the event, and which text of it.
-- `id` grows with the time of the event, so that the newest are found first without sorting.
CREATE TABLE text_places (
  id       INTEGER PRIMARY KEY,
  n        INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  part     INTEGER NOT NULL,
  source   TEXT
) STRICT;

-- DERIVED from the log. The index: no copy of the texts, the log has them. `marks` are words for what
-- a search is narrowed down by: tenant, kind, speaker, run, conversation.
CREATE VIRTUAL TABLE texts USING fts5(
  text, marks, content = '', columnsize = 0, tokenize = 'ascii'
);
INSERT INTO texts (texts, rank) VALUES ('automerge', 8);

-- PRIMARY. How far everybody has read.
CREATE TABLE read_marks (
  tenant    TEXT    NOT NULL,
  reader    TEXT    NOT NULL,
  thread_id TEXT    NOT NULL,
  sequence  INTEGER NOT NULL,
  turn      INTEGER NOT NULL,
  at        INTEGER NOT NULL,
  PRIMARY KEY (tenant, reader, thread_id)
) STRICT, WITHOUT ROWID;
