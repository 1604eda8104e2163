from django.urls import path

from memories_app.review.views import all_matching, decisions, queue, rules

app_name = "reviews"
urlpatterns = [
    path("", queue.review_queue, name="list"),
    path("decide/", decisions.decide_about_many, name="decide"),
    path("matching/", all_matching.all_matching, name="all-matching"),
    path("matching/count/", all_matching.matching_count, name="matching-count"),
    path("mine/", queue.my_decisions, name="mine"),
    path("rules/", rules.rule_list, name="rules"),
    path("rules/new/", rules.new_rule, name="rule-new"),
    path("rules/<uuid:rule_id>/", rules.rule, name="rule"),
    path("samples/<uuid:review_id>/", rules.judge, name="sample"),
    path("health/", rules.health, name="health"),
    path("digest/", rules.digest, name="digest"),
    path("<uuid:memory_id>/", queue.review, name="review"),
    path("<uuid:memory_id>/recall/", queue.recall_after, name="recall"),
    path("<uuid:memory_id>/approve/", decisions.approve, name="approve"),
    path("<uuid:memory_id>/edit/", decisions.edit, name="edit"),
    path("<uuid:memory_id>/reject/", decisions.reject, name="reject"),
    path("<uuid:memory_id>/merge/", decisions.merge, name="merge"),
    path("<uuid:memory_id>/snooze/", decisions.snooze, name="snooze"),
    path("<uuid:memory_id>/wake/", decisions.wake, name="wake"),
    path("<uuid:memory_id>/reopen/", decisions.reopen, name="reopen"),
    path("<uuid:memory_id>/accept-base/", decisions.accept_base, name="accept-base"),
    path("<uuid:memory_id>/undo/", decisions.undo, name="undo"),
    path("<uuid:memory_id>/let-go/", decisions.let_go, name="let-go"),
]
