-- OSM no longer says that it will end a call.
delete from carrick_osm_endings where endpoint = :endpoint
