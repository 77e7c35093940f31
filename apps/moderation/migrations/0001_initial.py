
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('spaces', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='StorageReport',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('measured_at', models.DateTimeField(db_index=True)),
                ('took_ms', models.FloatField()),
                ('files', models.PositiveIntegerField()),
                ('files_bytes', models.BigIntegerField()),
                ('index_bytes', models.BigIntegerField()),
                ('database_bytes', models.BigIntegerField()),
                ('orphan_files', models.PositiveIntegerField()),
                ('missing_files', models.PositiveIntegerField()),
                ('stale_documents', models.PositiveIntegerField()),
                ('idle_documents', models.PositiveIntegerField()),
            ],
            options={
                'verbose_name': 'storage report',
            },
        ),
        migrations.CreateModel(
            name='ContentGrant',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('reason', models.CharField(max_length=500)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('moderator', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='spaces.space')),
            ],
            options={
                'indexes': [models.Index(fields=['moderator', 'expires_at'], name='moderation_grant_live')],
            },
        ),
        migrations.CreateModel(
            name='StorageFigure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kb_ref', models.BigIntegerField()),
                ('originals_bytes', models.BigIntegerField(default=0)),
                ('derived_bytes', models.BigIntegerField(default=0)),
                ('files', models.PositiveIntegerField(default=0)),
                ('space', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='spaces.space')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('space', 'kb_ref'), name='moderation_figure_once')],
            },
        ),
    ]
