import MartletCache
import MartletWire

extension FuzzEntry {
    /// `Date`, `Expires`, `Last-Modified`, `Age` and `If-Modified-Since`, one per line; the controls are the times.
    ///
    /// An age is never negative and grows with the clock. A fresh response was also fresh before. A clock that was set
    /// back makes a response stale. No date traps, however distant it is.
    static let cacheDates = FuzzEntry("cache-dates") { (bytes) throws(FuzzFinding) in
        let input = FuzzInput(bytes)
        let names = [
            "Date", "Expires", "Last-Modified", "Age", "If-Modified-Since", "Age", "Date", "Expires",
        ]
        var fields = FieldBlock()
        let lines = input.payload.split(
            separator: ByteClass.lineFeed, maxSplits: names.count - 1, omittingEmptySubsequences: false)
        for (name, line) in zip(names, lines) where !line.isEmpty {
            fields.append(name: name.utf8, value: line)
        }
        let dates = MessageDates(fields, received: CacheFields.start)
        try require((0...(1 << 31)).contains(dates.age), "an age of \(dates.age)")
        let shift = Int64(input[0]) << Int64(input[1] & 0x3F)
        let moments = [0, 1, 60, shift, 0 &- shift, .max, .min].map {
            WallTime(milliseconds: CacheFields.start.milliseconds &+ $0)
        }
        // All request times are tried: before, at and after the response, and at the extremes of time.
        for request in [moments[0], moments[3], .init(milliseconds: .min)] {
            for response in moments {
                try checkFreshness(fields, request, response, moments)
            }
        }
    }

    private static func checkFreshness(
        _ fields: FieldBlock, _ request: WallTime, _ response: WallTime, _ moments: [WallTime]
    ) throws(FuzzFinding) {
        let head = StoredHead(
            key: CacheKey(url: "https://example.com/", partition: "p"), status: 200, reason: "",
            fields: fields,
            requestTime: request, responseTime: response)
        let stored = StoredVariant(head: head, bodyLength: 5)
        var last: Freshness?
        for now in moments.sorted() {
            let freshness = Freshness(of: head, now: now)
            try require(freshness.ageInMilliseconds >= 0 && freshness.age >= 0, "an age of \(freshness.age)")
            try require((0...(1 << 31)).contains(freshness.lifetime), "a lifetime of \(freshness.lifetime)")
            try require(now >= response || !freshness.isFresh, "fresh before it came")
            try require(
                request <= response || !freshness.isFresh, "fresh though it came before its request")
            if freshness.basis == .heuristic {
                try require(freshness.lifetime <= Freshness.heuristicLimit, "\(freshness.lifetime) guessed")
            }
            if let last {
                try require(freshness.ageInMilliseconds >= last.ageInMilliseconds, "it grows younger")
                try require(!freshness.isFresh || last.isFresh || last.isClockSetBack, "it becomes fresh")
            }
            last = freshness
            let decision = CacheDecision(CacheFields.request(fields), variants: [stored], now: now)
            if case .serve = decision { try require(freshness.isFresh, "served though it is stale") }
        }
    }
}
