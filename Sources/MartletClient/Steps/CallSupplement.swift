import MartletWire

/// What the steps of a call add to a request: cookies, and an answer to who is calling.
struct CallSupplement: Sendable {
    /// The value of `Cookie` from the jar, beside what the caller set.
    var cookies: [UInt8]?
    /// The value of `Authorization`.
    var authorization: [UInt8]?
    /// What the cache adds: conditions, and directives for the caches on the way.
    var cacheFields = FieldBlock()

    var isEmpty: Bool { cookies == nil && authorization == nil && cacheFields.isEmpty }
}
