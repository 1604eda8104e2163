"""Lua scripts, which the server runs in one step.

KEYS are the hash, the list and the counter of a session, as far as a script needs them.
"""

WINDOW = """
local count = redis.call('LLEN', KEYS[1])
local earlier, later, whole = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local place = tonumber(ARGV[1]) or (earlier > 0 and count or 0)
place = math.max(0, math.min(place, count))
local first, beyond = math.max(place - earlier, 0), math.min(place + later, count)
local items = {}
if beyond > first then
    for number, text in ipairs(redis.call('LRANGE', KEYS[1], first, beyond - 1)) do
        if #text <= whole then
            items[number] = {#text, text, ''}
        else
            items[number] = {#text, string.sub(text, 1, ARGV[5]), string.sub(text, -ARGV[6])}
        end
    end
end
return {count, first, items}
"""

# Number of items, remaining time to live, and the beginnings of the first items; empty if there is no session.
PREVIEW = """
local is_hash = redis.call('TYPE', KEYS[1]).ok == 'hash'
local is_list = redis.call('TYPE', KEYS[2]).ok == 'list'
if not is_hash and not is_list then return {} end
local heads, count = {}, 0
if is_list then
    count = redis.call('LLEN', KEYS[2])
    for number, text in ipairs(redis.call('LRANGE', KEYS[2], 0, ARGV[1] - 1)) do
        heads[number] = string.sub(text, 1, ARGV[2])
    end
end
return {count, redis.call('PTTL', is_hash and KEYS[1] or KEYS[2]), heads}
"""

# Meaning of a scanned key: a session, a list without its hash, or neither. KEYS: the key, its list if it is a hash, and
# its hash if it is a list.
FOUND = """
local kind = redis.call('TYPE', KEYS[1]).ok
local about, list = {}, KEYS[2]
if kind == 'hash' then
    about = redis.call('HMGET', KEYS[1], 'session_id', 'created_at', 'updated_at')
elseif kind == 'list' and KEYS[3] ~= KEYS[1] and redis.call('EXISTS', KEYS[3]) == 0 then
    list = KEYS[1]
else
    return {kind}
end
local count, last = 0, ''
if redis.call('TYPE', list).ok == 'list' then
    count = redis.call('LLEN', list)
    last = redis.call('LINDEX', list, -1) or ''
end
local mark = string.sub(redis.sha1hex(string.sub(last, -4096)), 1, 16)
return {kind, about[1] or '', about[2] or '', about[3] or '', count, redis.call('PTTL', KEYS[1]), mark}
"""

# All three keys are checked before the first change, as the SDK does. ARGV: the session id, the number of items.
DELETE_NEWEST = """
local wanted = {'hash', 'list', 'string'}
for number, key in ipairs(KEYS) do
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'none' and kind ~= wanted[number] then
        return redis.error_reply('WRONGTYPE key of a session')
    end
end
local owner = redis.call('HGET', KEYS[1], 'session_id')
if owner and owner ~= ARGV[1] then return redis.error_reply('WRONGTYPE hash of another session') end
local count, at_most = redis.call('LLEN', KEYS[2]), tonumber(ARGV[2])
if count > at_most then
    if at_most > 0 then redis.call('LTRIM', KEYS[2], 0, count - at_most - 1) end
    return {at_most, count - at_most}
end
redis.call('DEL', unpack(KEYS))
return {count, 0}
"""

REPLACE = """
local stored = redis.call('LINDEX', KEYS[1], ARGV[1])
if not stored then return 'unknown' end
if stored ~= ARGV[2] then return 'changed' end
redis.call('LSET', KEYS[1], ARGV[1], ARGV[3])
return 'done'
"""

# ARGV: a text that is no item, and then index and text of each item. Items are marked first and removed together,
# because each removal changes the indexes behind it.
DELETE = """
local gone = {}
for number = 2, #ARGV, 2 do
    local stored = redis.call('LINDEX', KEYS[1], ARGV[number])
    if stored and stored ~= ARGV[number + 1] then return -1 end
    if stored then gone[#gone + 1] = ARGV[number] end
end
for _, place in ipairs(gone) do redis.call('LSET', KEYS[1], place, ARGV[1]) end
if #gone > 0 then redis.call('LREM', KEYS[1], 0, ARGV[1]) end
return #gone
"""
