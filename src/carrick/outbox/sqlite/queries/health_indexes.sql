-- The indexes of Carrick's tables.
select name from sqlite_schema where type = 'index' and tbl_name like 'carrick\_%' escape '\'
