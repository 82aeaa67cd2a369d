"""The resources of queues and subscriptions."""

from moot.client.http.methods import Resource, S, client_method
from moot.client.operations import triggers


class QueuesResource(Resource[S]):
    """All queues and their items."""

    list = client_method(triggers.list_queues)
    get = client_method(triggers.get_queue)
    bind = client_method(triggers.bind_queue)
    unbind = client_method(triggers.unbind_queue)
    push = client_method(triggers.push_item)
    items = client_method(triggers.list_items)
    item = client_method(triggers.get_item)
    redeliver = client_method(triggers.redeliver_item)
    drop = client_method(triggers.drop_item)


class SubscriptionsResource(Resource[S]):
    """All subscriptions and deliveries."""

    list = client_method(triggers.list_subscriptions)
    get = client_method(triggers.get_subscription)
    register = client_method(triggers.create_subscription)
    change = client_method(triggers.change_subscription)
    remove = client_method(triggers.remove_subscription)
    rotate = client_method(triggers.rotate_subscription_secret)
    dead_letters = client_method(triggers.list_subscription_dead_letters)
    send = client_method(triggers.send_to_subscription)
    deliveries = client_method(triggers.list_deliveries)
    delivery = client_method(triggers.get_delivery)
    redeliver = client_method(triggers.redeliver_delivery)
    drop = client_method(triggers.drop_delivery)
