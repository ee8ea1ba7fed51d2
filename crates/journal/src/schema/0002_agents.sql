-- What agents do is told by new kinds of events. The tables that follow from them are made anew.
SELECT 1;
