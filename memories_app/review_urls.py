from django.urls import path

from memories_app.views import deciding, reviews, rules

app_name = "reviews"
urlpatterns = [
    path("", reviews.review_queue, name="list"),
    path("decide/", deciding.decide_about_many, name="decide"),
    path("views/", reviews.save_view, name="view-save"),
    path("views/<uuid:view_id>/delete/", reviews.delete_view, name="view-delete"),
    path("rules/", rules.rule_list, name="rules"),
    path("rules/new/", rules.new_rule, name="rule-new"),
    path("rules/<uuid:rule_id>/", rules.rule, name="rule"),
    path("samples/<uuid:review_id>/", rules.judge, name="sample"),
    path("health/", rules.health, name="health"),
    path("digest/", rules.digest, name="digest"),
    path("<uuid:memory_id>/", reviews.review, name="review"),
    path("<uuid:memory_id>/recall/", reviews.recall_after, name="recall"),
    path("<uuid:memory_id>/approve/", deciding.approve, name="approve"),
    path("<uuid:memory_id>/edit/", deciding.edit, name="edit"),
    path("<uuid:memory_id>/reject/", deciding.reject, name="reject"),
    path("<uuid:memory_id>/merge/", deciding.merge, name="merge"),
    path("<uuid:memory_id>/snooze/", deciding.snooze, name="snooze"),
    path("<uuid:memory_id>/wake/", deciding.wake, name="wake"),
    path("<uuid:memory_id>/reopen/", deciding.reopen, name="reopen"),
    path("<uuid:memory_id>/accept-base/", deciding.accept_base, name="accept-base"),
    path("<uuid:memory_id>/undo/", deciding.undo, name="undo"),
    path("<uuid:memory_id>/let-go/", deciding.let_go, name="let-go"),
]
