
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('ingestion', '0002_file_password'),
        ('knowledge', '0002_runs_and_list_indexes'),
        ('spaces', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ReindexRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=16)),
                ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled')], default='queued', max_length=16)),
                ('attempt', models.PositiveIntegerField(default=0)),
                ('takeovers', models.PositiveIntegerField(default=0)),
                ('claim_token', models.UUIDField(null=True)),
                ('worker', models.CharField(blank=True, max_length=120)),
                ('lease_until', models.DateTimeField(null=True)),
                ('not_before', models.DateTimeField(null=True)),
                ('cancel_requested', models.BooleanField(default=False)),
                ('progress_done', models.PositiveIntegerField(default=0)),
                ('progress_total', models.PositiveIntegerField(default=0)),
                ('progress_failed', models.PositiveIntegerField(default=0)),
                ('progress_unit', models.CharField(blank=True, max_length=16)),
                ('reason', models.CharField(blank=True, max_length=32)),
                ('error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('rung_at', models.DateTimeField(null=True)),
                ('target_model_id', models.CharField(blank=True, max_length=128)),
                ('target_space', models.CharField(blank=True, max_length=160)),
                ('from_space', models.CharField(blank=True, max_length=160)),
                ('starter_id', models.UUIDField(null=True)),
                ('switched_at', models.DateTimeField(null=True)),
                ('kb', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reindex_runs', to='knowledge.knowledgebase')),
                ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='spaces.space')),
            ],
            options={
                'abstract': False,
                'indexes': [models.Index(fields=['kind', 'state', 'space', 'id'], name='ingestion_reindexrun_pick')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('state', 'running'), _negated=True), ('claim_token__isnull', False), _connector='OR'), name='ingestion_reindexrun_running_is_claimed'), models.UniqueConstraint(condition=models.Q(('state__in', ['queued', 'running'])), fields=('kb',), name='ingestion_reindexrun_one_live')],
            },
        ),
    ]
