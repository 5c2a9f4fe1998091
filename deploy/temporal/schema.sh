#!/bin/sh
# Brings Temporal's two PostgreSQL databases to the schema of this admin-tools image.
# May run any number of times. Reads SQL_HOST, SQL_USER and SQL_PASSWORD.
set -eu

schemas=/etc/temporal/schema/postgresql/v12

bring_up_to_date() {
    database=$1
    folder=$2
    sql() {
        temporal-sql-tool --plugin postgres12 --ep "$SQL_HOST" -p 5432 -u "$SQL_USER" \
            --db "$database" "$@"
    }
    sql create
    sql setup-schema -v 0.0
    sql update-schema -d "$schemas/$folder/versioned"
}

bring_up_to_date temporal temporal
bring_up_to_date temporal_visibility visibility
