"""The resource of webhooks."""

from moot.client.http.methods import Resource, S, client_method
from moot.client.operations import webhooks


class WebhooksResource(Resource[S]):
    """All webhooks."""

    list = client_method(webhooks.list_webhooks)
    get = client_method(webhooks.get_webhook)
    register = client_method(webhooks.register_webhook)
    rotate = client_method(webhooks.rotate_webhook_secret)
    remove = client_method(webhooks.remove_webhook)
    dead_letters = client_method(webhooks.list_webhook_dead_letters)
    redeliver = client_method(webhooks.redeliver_dead_letter)
    drop = client_method(webhooks.drop_dead_letter)
    pause = client_method(webhooks.pause_webhook)
    resume = client_method(webhooks.resume_webhook)
