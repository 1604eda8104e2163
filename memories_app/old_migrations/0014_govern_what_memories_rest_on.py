import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations


class Migration(migrations.Migration):
    """Records what raw SQL changes of texts, evidence, signals and recalls, and all that a decision rests on."""

    dependencies = [
        ("memories_app", "0013_where_readings_go_on"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="memory",
            name="note_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="memory",
            name="note_update",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="memory",
            name="note_delete",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="memory",
            name="note_truncate",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="review",
            name="note_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="review",
            name="note_update",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="review",
            name="note_delete",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="review",
            name="note_truncate",
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,signal_id', 'session_id,quote')",
                    func="RETURN NULL;",
                    hash="7524b4ff834305c3f88e6f1381c78f5fed340f00",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_0beb2",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_evidence",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,signal_id', 'session_id,quote')",
                    func="RETURN NULL;",
                    hash="d5f283842614f7066f6ad95c363f1d6bd152570a",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_41349",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_evidence",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,signal_id', 'session_id,quote')",
                    func="RETURN NULL;",
                    hash="a575ad25eb802ab038b3b5e9d787ef5014e47e35",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_61c2f",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_evidence",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="evidence",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('evidence', 'memories_app.evidence', 'id', 'uuid', '', 'memory_id,version,record_id,session_id,item_id,speaker,quote,signal_id', 'session_id,quote')",
                    func="RETURN NULL;",
                    hash="8dda3632b915b2585f0945e1db929a5d6f493060",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_28954",
                    table="memories_app_evidence",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data')",
                    func="RETURN NULL;",
                    hash="2b3e0a1dbc67b33e72686f078e98ebde368188bd",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_1c367",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data')",
                    func="RETURN NULL;",
                    hash="1737f335d27f00a86297993a9e1d81039bd85a73",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_af581",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data')",
                    func="RETURN NULL;",
                    hash="c15b7ce704bf8e682a8431ab8200385964bd003e",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_63670",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('memory', 'memories_app.memory', 'id', 'uuid', 'subject_id', 'subject_id,kind,key,statement,data,agents,status,provenance,source,confidence,valid_from,valid_until,revalidate_on,version,is_verified,replaces_id,base_version,merged_into_id,risk_flags,screened_hash,extractor,proposed_by_id,awaiting_since', 'key,statement,data')",
                    func="RETURN NULL;",
                    hash="35baeebf2823a43adfdc5dda486ca327ac40c8a0",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_0e187",
                    table="memories_app_memory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memoryversion",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (pg_trigger_depth() = 0)",
                    execute="memadmin_note_rows('memory_version', 'memories_app.memoryversion', 'id', 'uuid', '', 'memory_id,number,statement,data,content_hash,author_kind,author_ref,erased_at', 'statement,data')",
                    func="RETURN NULL;",
                    hash="b523c5f477ed4da7cbe35f820b0f93acec14b56b",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_bb542",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_memoryversion",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memoryversion",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (pg_trigger_depth() = 0)",
                    execute="memadmin_note_rows('memory_version', 'memories_app.memoryversion', 'id', 'uuid', '', 'memory_id,number,statement,data,content_hash,author_kind,author_ref,erased_at', 'statement,data')",
                    func="RETURN NULL;",
                    hash="aba6c1d836ab9c097fdc671ca430078a11204324",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_7ebf2",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_memoryversion",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memoryversion",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition="WHEN (pg_trigger_depth() = 0)",
                    execute="memadmin_note_rows('memory_version', 'memories_app.memoryversion', 'id', 'uuid', '', 'memory_id,number,statement,data,content_hash,author_kind,author_ref,erased_at', 'statement,data')",
                    func="RETURN NULL;",
                    hash="d470417502b001bd01bf756cb943abb37f5bcdfc",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_e919c",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_memoryversion",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="memoryversion",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('memory_version', 'memories_app.memoryversion', 'id', 'uuid', '', 'memory_id,number,statement,data,content_hash,author_kind,author_ref,erased_at', 'statement,data')",
                    func="RETURN NULL;",
                    hash="c14164333301c780a0c377f29eaf30fc7a8190bb",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_7fdd0",
                    table="memories_app_memoryversion",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recall",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('recall', 'memories_app.recall', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,agent,recalled_at', 'session_id')",
                    func="RETURN NULL;",
                    hash="05249369747e7de0fddc564dc7fd6f3a3537584a",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_90c95",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_recall",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recall",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('recall', 'memories_app.recall', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,agent,recalled_at', 'session_id')",
                    func="RETURN NULL;",
                    hash="dd3aaebcb3513707848c2aaaeadcb3db016460c8",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_62dc5",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_recall",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recall",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('recall', 'memories_app.recall', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,agent,recalled_at', 'session_id')",
                    func="RETURN NULL;",
                    hash="ef1e20a18620b3477686a2f7730494d9ab329320",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_8550c",
                    table="memories_app_recall",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recalledmemory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('recalled_memory', 'memories_app.recalledmemory', 'id', 'uuid', '', 'recall_id,memory_id,version,place', '')",
                    func="RETURN NULL;",
                    hash="2d2549439892a6120682a084a2d80b442ff61e57",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_556c6",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_recalledmemory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recalledmemory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('recalled_memory', 'memories_app.recalledmemory', 'id', 'uuid', '', 'recall_id,memory_id,version,place', '')",
                    func="RETURN NULL;",
                    hash="55fd19994322fac29a66052481d6664e488d92f6",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_4de78",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_recalledmemory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="recalledmemory",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('recalled_memory', 'memories_app.recalledmemory', 'id', 'uuid', '', 'recall_id,memory_id,version,place', '')",
                    func="RETURN NULL;",
                    hash="d76eff1c502ecb358ec73f78122f916bec04a4ad",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_424e7",
                    table="memories_app_recalledmemory",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="review",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,note,content_hash,was_edited,is_sample,agreed,decided_at,undone_at', 'note')",
                    func="RETURN NULL;",
                    hash="8e1b7d31fbaafccb681846d2901541cabd255f7e",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_799f8",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_review",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="review",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,note,content_hash,was_edited,is_sample,agreed,decided_at,undone_at', 'note')",
                    func="RETURN NULL;",
                    hash="527048ee8f62ef8189ed058f71687522155ec272",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_5140a",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_review",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="review",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,note,content_hash,was_edited,is_sample,agreed,decided_at,undone_at', 'note')",
                    func="RETURN NULL;",
                    hash="b2c10deb4f5c47bb9267b4b84c4e837ef66af6ce",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_28a84",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_review",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="review",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('review', 'memories_app.review', 'id', 'uuid', '', 'memory_id,reviewer_id,rule_id,decision,reason_code,note,content_hash,was_edited,is_sample,agreed,decided_at,undone_at', 'note')",
                    func="RETURN NULL;",
                    hash="989477825cd46984790e27fee82ac87ad41d121e",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_08897",
                    table="memories_app_review",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="savedview",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('saved_view', 'memories_app.savedview', 'id', 'uuid', '', 'owner_id,name,query', 'name,query')",
                    func="RETURN NULL;",
                    hash="12ee5f62f7bc73739c27bdc2297944c07342a214",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_ef483",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_savedview",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="savedview",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('saved_view', 'memories_app.savedview', 'id', 'uuid', '', 'owner_id,name,query', 'name,query')",
                    func="RETURN NULL;",
                    hash="2b6eb4c3734ee89858fdb78063440c2da09b42a8",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_55812",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_savedview",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="savedview",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('saved_view', 'memories_app.savedview', 'id', 'uuid', '', 'owner_id,name,query', 'name,query')",
                    func="RETURN NULL;",
                    hash="eaeaf8106df1730b9dd1bda87a767b60ea9090ee",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_174cd",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_savedview",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="savedview",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('saved_view', 'memories_app.savedview', 'id', 'uuid', '', 'owner_id,name,query', 'name,query')",
                    func="RETURN NULL;",
                    hash="b2e2ec754b4ee6e93238975915f9bbcff945063e",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_d1514",
                    table="memories_app_savedview",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signal",
            trigger=pgtrigger.compiler.Trigger(
                name="note_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text')",
                    func="RETURN NULL;",
                    hash="3745717f8ed44ad04dcc3f133b7fb7bd71cabbf5",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_note_insert_21138",
                    referencing="REFERENCING NEW TABLE AS new_rows ",
                    table="memories_app_signal",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signal",
            trigger=pgtrigger.compiler.Trigger(
                name="note_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text')",
                    func="RETURN NULL;",
                    hash="f144723c54baf2af1c5d0cfcbde2a9ae1ec7f8b7",
                    level="STATEMENT",
                    operation="UPDATE",
                    pgid="pgtrigger_note_update_64237",
                    referencing="REFERENCING OLD TABLE AS old_rows  NEW TABLE AS new_rows ",
                    table="memories_app_signal",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signal",
            trigger=pgtrigger.compiler.Trigger(
                name="note_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text')",
                    func="RETURN NULL;",
                    hash="afc3ee8a268884a262746067e93f8d51e065cb40",
                    level="STATEMENT",
                    operation="DELETE",
                    pgid="pgtrigger_note_delete_44723",
                    referencing="REFERENCING OLD TABLE AS old_rows ",
                    table="memories_app_signal",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="signal",
            trigger=pgtrigger.compiler.Trigger(
                name="note_truncate",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    execute="memadmin_note_rows('signal', 'memories_app.signal', 'id', 'uuid', 'subject_id', 'subject_id,record_id,session_id,item_id,kind,value,text,agent,memory_id,given_by_id', 'session_id,text')",
                    func="RETURN NULL;",
                    hash="f2506fdbb84860a70bcd5eff3de629c170cc8b5f",
                    level="STATEMENT",
                    operation="TRUNCATE",
                    pgid="pgtrigger_note_truncate_9f435",
                    table="memories_app_signal",
                    when="AFTER",
                ),
            ),
        ),
    ]
