-- What a person may search for in a stored item, as words. An index on it is written inside the agents' own INSERTs,
-- so it must never raise, never notice, never depend on who calls it, and cost little:
-- - only the beginning of a long item counts, which keeps the result far below PostgreSQL's limit of 1 MB;
-- - JSON is not parsed, because what is stored may be cut off, nested ten thousand deep, or hold escapes that jsonb
--   refuses (\u0000, lone surrogates); member names and the SDK's own values are dropped by their quotes, which inside
--   of a JSON string are always escaped;
-- - tool outputs are often JSON inside a JSON string: there \u00e9 and \n have several backslashes;
-- - base64 and everything else that is too long to be a word goes, else PostgreSQL warns about each;
-- - "-12", "a/b", "x@y.z" and "<b>" are words of their own to PostgreSQL's parser; people search for the parts;
-- - Chinese and Japanese have no spaces: there each sign is a word, and a search for several is one for a phrase.
-- `sessions_app.search_syntax` does the same to what people type. A change here asks for a new function, because the
-- indexes that exist hold the answers of this one.
--
-- A block that catches needs a subtransaction, which a parallel worker may not start: PARALLEL UNSAFE.
CREATE FUNCTION memadmin_item_words(data text) RETURNS tsvector
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL UNSAFE COST 2000
SET search_path = pg_catalog, pg_temp
AS $body$
DECLARE
    words text := left(data, 131072);
    own_value text;
    special text;
    gap text;
BEGIN
    IF strpos(left(words, 100), '"__enc__"') > 0 THEN
        RETURN '';
    END IF;
    words := regexp_replace(words, '"[A-Za-z_]+" ?: ?', ' ', 'g');
    FOREACH own_value IN ARRAY ARRAY['"user"', '"assistant"', '"message"', '"completed"', '"output_text"',
        '"input_text"', '"summary_text"', '"function_call"', '"function_call_output"', '"reasoning"']
    LOOP
        words := replace(words, own_value, ' ');
    END LOOP;
    IF length(words) > 1000 THEN
        words := regexp_replace(words, '[A-Za-z0-9+/_=-]{200,}', ' ', 'g');
    END IF;
    IF strpos(words, '\') > 0 THEN
        words := regexp_replace(words, '\\+[bfnrt]', ' ', 'g');
        IF strpos(words, '\u') > 0 THEN
            words := regexp_replace(words, '\\{2,}(?=u[0-9A-Fa-f]{4})', '\\', 'g');
            words := regexp_replace(words, '\\(?!u[0-9A-Fa-f]{4})|\\u0000', ' ', 'g');
            -- Halves of surrogate pairs that stand alone.
            words := regexp_replace(words, '\\u[Dd][89ABab][0-9A-Fa-f]{2}(?!\\u[Dd][C-Fc-f])', ' ', 'g');
            words := regexp_replace(words,
                '(?<!\\u[Dd][89ABab][0-9A-Fa-f]{2})\\u[Dd][C-Fc-f][0-9A-Fa-f]{2}', ' ', 'g');
            words := unistr(words);
        END IF;
    END IF;
    IF octet_length(words) > length(words) THEN
        words := regexp_replace(words, '[\u0080-\u00a9\u00ab-\u00b4\u00b6-\u00b9\u00bb-\u00bf]', ' ', 'g');
        words := regexp_replace(words, '[\u2000-\u206f\u3000-\u3004\u3008-\u3020\u3030\uff00-\uff0f]', ' ', 'g');
        words := regexp_replace(words, '([\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff])', ' \1 ', 'g');
    END IF;
    FOREACH special IN ARRAY ARRAY['-', '+', '/', '.', '@', '~', '&', '<', '\']
    LOOP
        words := replace(words, special, ' ');
    END LOOP;
    IF octet_length(words) > 2000 THEN
        -- To the parser of a database with the C locale every sign beyond ASCII is a letter, to its regular
        -- expressions none is.
        gap := CASE WHEN chr(233) ~ '[[:alnum:]]' THEN '[^[:alnum:]]' ELSE '[\s!-/:-@\[-`{-~]' END;
        words := regexp_replace(words, '[^\s!-/:-@\[-`{-~]{250,}|' || gap || '{250,}', ' ', 'g');
    END IF;
    RETURN to_tsvector('simple', words);
EXCEPTION WHEN others THEN
    -- A database in another encoding than UTF-8, for one.
    RETURN to_tsvector('simple', regexp_replace(left(data, 32768), '\S{200,}|\s{200,}', ' ', 'g'));
END
$body$;
GRANT EXECUTE ON FUNCTION memadmin_item_words(text) TO PUBLIC;
