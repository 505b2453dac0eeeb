import MartletCache
import MartletWire

extension FuzzEntry {
    /// `Cache-Control` of a request and of a response, one field per line.
    ///
    /// The first line of controls selects the status. An additional directive never relaxes the field. A forbidden
    /// response is neither stored nor served.
    static let cacheControl = FuzzEntry("cache-control") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let fields = CacheFields.lines(input.payload, as: "Cache-Control")
        try checkNumbers(CacheControl(response: fields))
        try checkNumbers(CacheControl(request: fields))
        try checkStricter(fields)
        try checkUse(fields, status: input.isSet(0, at: 0) ? 302 : 200)
    }

    private static func checkNumbers(_ control: CacheControl) throws(FuzzFinding) {
        let numbers = [
            control.maxAge, control.sharedMaxAge, control.minFresh, control.staleIfError,
            control.staleWhileRevalidate,
        ]
        for case .some(let seconds) in numbers {
            try require((0...(1 << 31)).contains(seconds), "\(seconds) seconds")
        }
        if let seconds = control.maxStale, seconds != .max {
            try require((0...(1 << 31)).contains(seconds), "\(seconds) seconds")
        }
        for scope in [control.noCache, control.isPrivate] {
            guard case .fields(let names) = scope else { continue }
            let areNames = names.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(ByteClass.isToken) }
            try require(!names.isEmpty && areNames && names == Set(names).sorted(), "\(names)")
        }
    }

    /// Checks that another field with strict directives applies, whatever precedes it.
    private static func checkStricter(_ fields: FieldBlock) throws(FuzzFinding) {
        let before = CacheControl(response: fields)
        var more = fields
        more.append(name: "cache-control", value: "max-age=7, NO-STORE, no-cache, must-revalidate")
        let after = CacheControl(response: more)
        try require(after.isNoStore && after.isNoCache && after.forbidsStale, "\(after)")
        try require((after.maxAge ?? 8) <= min(7, before.maxAge ?? 7), "\(after)")
        try require(CacheControl(response: more) == after, "it is read in two ways")
    }

    private static func checkUse(_ fields: FieldBlock, status: Int) throws(FuzzFinding) {
        let control = CacheControl(response: fields)
        let request = CacheFields.request(FieldBlock())
        let response = ResponseHead(status: status, fields: fields)
        let decision = StorageDecision(
            response, to: request, requestTime: CacheFields.start, responseTime: CacheFields.start)
        guard case .store(let head) = decision else { return }
        try require(!control.isNoStore || control.mustUnderstand, "stored despite no-store")
        let variants = [StoredVariant(head: head, bodyLength: 10)]
        for seconds in [Int64(0), 1, 1000, 1 << 32] {
            let now = WallTime(seconds: CacheFields.start.seconds + seconds)
            for mode in CacheMode.allCases {
                let decided = CacheDecision(
                    CacheFields.request(FieldBlock(), mode: mode), variants: variants, now: now)
                guard case .serve(let answer) = decided, !mode.servesUnvalidated else { continue }
                try require(!control.isNoCache, "served despite no-cache")
                try require(!answer.isStale || !control.forbidsStale, "served stale despite a directive")
            }
            // The same field in a request: a stored response is served only within its limits.
            let asked = CacheFields.request(fields)
            guard case .serve(let answer) = CacheDecision(asked, variants: variants, now: now) else {
                continue
            }
            try require(!asked.control.isNoStore && !asked.control.isNoCache, "served despite the request")
            if let limit = asked.control.maxAge { try require(answer.freshness.age <= limit, "too old") }
        }
    }
}
