select format('select t::text from %I t', tablename) from pg_tables where schemaname = 'public' \gexec
