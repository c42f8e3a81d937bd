-- OSM no longer says that it will end a call.
delete from carrick.osm_endings where endpoint = %(endpoint)s
