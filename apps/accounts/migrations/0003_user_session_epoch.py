
from django.db import migrations, models


# upgrade: adds a column with a default to the table of people: SQLite rewrites that (small) table, PostgreSQL does not.
class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_founder'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='session_epoch',
            field=models.PositiveIntegerField(default=0),
        ),
    ]
