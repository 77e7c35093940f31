
import django.db.models.deletion
import uuid
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('spaces', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='ModelPace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('key', models.CharField(max_length=64, unique=True)),
                ('passages_per_s', models.FloatField()),
                ('measured_at', models.DateTimeField(auto_now=True)),
            ],
        ),
        migrations.CreateModel(
            name='EndpointFact',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('base_url', models.CharField(max_length=500)),
                ('model', models.CharField(max_length=200)),
                ('dimension', models.PositiveIntegerField()),
                ('found_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('base_url', 'model'), name='llm_endpointfact_once')],
            },
        ),
        migrations.CreateModel(
            name='Model',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('uid', models.UUIDField(default=uuid.uuid4, unique=True)),
                ('name', models.CharField(max_length=100)),
                ('display_name', models.CharField(blank=True, max_length=100)),
                ('description', models.CharField(blank=True, max_length=500)),
                ('type', models.CharField(choices=[('KnowledgeQA', 'Chat'), ('Embedding', 'Embedding'), ('Rerank', 'Rerank'), ('VLLM', 'Vision'), ('ASR', 'Speech')], default='Embedding', max_length=12)),
                ('source', models.CharField(default='remote', max_length=16)),
                ('provider', models.CharField(blank=True, max_length=32)),
                ('base_url', models.CharField(max_length=500)),
                ('api_key', models.TextField(blank=True)),
                ('query_prefix', models.CharField(blank=True, max_length=100)),
                ('passage_prefix', models.CharField(blank=True, max_length=100)),
                ('batch_size', models.PositiveIntegerField(default=32)),
                ('concurrency', models.PositiveIntegerField(default=3)),
                ('connect_timeout_s', models.FloatField(default=5.0)),
                ('read_timeout_s', models.FloatField(default=60.0)),
                ('dimension', models.PositiveIntegerField(default=0)),
                ('send_dimension', models.BooleanField(default=False)),
                ('probe', models.BinaryField(default=bytes)),
                ('revision', models.PositiveIntegerField(default=1)),
                ('tested_at', models.DateTimeField(null=True)),
                ('test_ms', models.FloatField(null=True)),
                ('test_error', models.CharField(blank=True, max_length=32)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='spaces.space')),
            ],
            options={
                'indexes': [models.Index(fields=['space', 'type', 'id'], name='llm_model_list')],
            },
        ),
    ]
