
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0004_serving_models'),
        ('spaces', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='RetrievalLog',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('created_at', models.DateTimeField(db_index=True)),
                ('door', models.CharField(choices=[('rest-base', 'REST, one base'), ('rest-space', 'REST, several bases'), ('page', 'Search page'), ('palette', 'Quick search'), ('test', 'Retrieval test')], max_length=16)),
                ('actor', models.CharField(max_length=80)),
                ('actor_user_id', models.UUIDField(null=True)),
                ('key_id', models.BigIntegerField(null=True)),
                ('request_id', models.CharField(blank=True, max_length=64)),
                ('query_text', models.TextField(blank=True)),
                ('query_chars', models.PositiveIntegerField(default=0)),
                ('kb_uids', models.JSONField(default=list)),
                ('bases', models.PositiveIntegerField(default=0)),
                ('mode', models.CharField(max_length=8)),
                ('options', models.JSONField(default=dict)),
                ('decision', models.CharField(blank=True, max_length=16)),
                ('rule', models.CharField(blank=True, max_length=64)),
                ('explicit_refs', models.JSONField(null=True)),
                ('budget_chars', models.PositiveIntegerField(null=True)),
                ('injected_chars', models.PositiveIntegerField(null=True)),
                ('outcome', models.CharField(choices=[('hit', 'Found'), ('near', 'By meaning only'), ('miss', 'Nothing found'), ('error', 'Failed')], max_length=8)),
                ('hits', models.JSONField(default=list)),
                ('hits_count', models.PositiveIntegerField(default=0)),
                ('legs', models.JSONField(default=dict)),
                ('failed_leg', models.CharField(blank=True, max_length=16)),
                ('error', models.CharField(blank=True, max_length=64)),
                ('took_ms', models.FloatField(default=0)),
                ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='spaces.space')),
            ],
            options={
                'verbose_name': 'search',
                'verbose_name_plural': 'searches',
                'indexes': [models.Index(fields=['space', '-id'], name='retrieval_log_space'), models.Index(fields=['outcome', '-id'], name='retrieval_log_outcome')],
            },
        ),
    ]
