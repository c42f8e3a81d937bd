-- For the rest of this transaction indexes are walked in their order, whatever the statistics say (the functions pin theirs likewise).
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)
