# upgrade: one row per knowledge base is rewritten on SQLite; over in a moment, nothing to do.

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('retrieval', '0002_base_index'),
        ('spaces', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='baseindex',
            name='model_id',
            field=models.CharField(blank=True, max_length=128),
        ),
        migrations.AddField(
            model_name='baseindex',
            name='previous_model_id',
            field=models.CharField(blank=True, max_length=128),
        ),
        migrations.AddField(
            model_name='baseindex',
            name='previous_space',
            field=models.CharField(blank=True, max_length=160),
        ),
        migrations.CreateModel(
            name='RetiredSpace',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('vector_space', models.CharField(max_length=160)),
                ('retired_at', models.DateTimeField()),
                ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='spaces.space')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('space', 'vector_space'), name='retrieval_retiredspace_once')],
            },
        ),
    ]
