package import MartletURL
package import FoundationEssentials
import MartletWire

/// The cookies, and the choice of those for a URL (RFC 6265bis §5.7, §5.8). The current time is passed in; nothing
/// waits.
///
/// Cookies are grouped by registrable domain: all cookies for a host are in one group (a bucket), for any number of
/// other cookies.
package struct CookieStore: Sendable {
    /// A cookie, and its number in the order of arrival, which distinguishes cookies of the same time.
    struct Entry: Sendable {
        var cookie: Cookie
        let ordinal: UInt64
    }

    /// The limits on cookies.
    package let limits: CookieLimits
    /// The public suffixes, which do not change while there are cookies.
    package let suffixes: any PublicSuffixes
    /// The number of cookies, including expired ones that are not removed yet.
    package private(set) var count = 0
    /// Counts changes: cookies that were stored or removed, but not their use.
    package private(set) var revision: UInt64 = 0
    /// The cookies by registrable domain, or by the whole name without one.
    private var buckets: [String: [Entry]] = [:]
    private var nextOrdinal: UInt64 = 0

    /// Creates a store without cookies.
    package init(limits: CookieLimits, suffixes: any PublicSuffixes) {
        (self.limits, self.suffixes) = (limits, suffixes)
    }

    // MARK: Storing

    /// Stores the cookies of a response, given by its `Set-Cookie` fields, in order.
    /// - Parameter isSecure: whether the connection counts as secure.
    /// - Returns: the fields that were not stored, with the reasons.
    package mutating func receive(_ fields: [[UInt8]], from url: HTTPURL, isSecure: Bool, now: Date)
        -> [CookieRejection]
    {
        var rejections: [CookieRejection] = []
        let rule = CookieAcceptanceRule(url: url, isSecure: isSecure, suffixes: suffixes, now: now)
        for (index, field) in fields.prefix(limits.perResponse).enumerated() {
            var name = ""
            do throws(CookieRejection.Reason) {
                let request = try SetCookieParser.parse(field[...])
                name = String(decoding: request.name, as: UTF8.self)
                let cookie = try rule.cookie(request)
                if !isSecure, !cookie.isSecure, wouldShadow(cookie, at: now) { throw .shadowsSecureCookie }
                insert(cookie, now: now)
            } catch { rejections.append(CookieRejection(index: index, name: name, reason: error)) }
        }
        if fields.count > limits.perResponse {
            rejections.append(CookieRejection(index: limits.perResponse, name: "", reason: .overLimit))
        }
        return rejections
    }

    /// Stores a cookie, replacing the same one, and evicts cookies beyond the limits.
    ///
    /// An expired cookie removes the same one. One for a public suffix is restricted to that host; the expiry is
    /// limited.
    /// - Returns: whether it is stored now.
    @discardableResult package mutating func insert(_ given: Cookie, now: Date) -> Bool {
        var cookie = fitted(given, now: now)
        let key = key(of: CookieHost(canonical: cookie.domain))
        let isExpired = cookie.isExpired(at: now)
        if let old = buckets[key]?.firstIndex(where: { $0.cookie.isSame(as: cookie) }) {
            if !isExpired, let found = buckets[key]?[old].cookie, !found.isExpired(at: now) {
                revision &+= 1
                cookie.created = found.created
                buckets[key]?[old].cookie = cookie
                return true
            }
            drop(from: key, at: old)
        }
        if !isExpired {
            buckets[key, default: []].append(Entry(cookie: cookie, ordinal: nextOrdinal))
            nextOrdinal &+= 1
            count += 1
            revision &+= 1
        }
        guard evict(from: key, now: now) else { return !isExpired }
        return buckets[key]?.contains { $0.cookie.isSame(as: cookie) } ?? false
    }

    private func fitted(_ cookie: Cookie, now: Date) -> Cookie {
        let latest = now.addingTimeInterval(Double(limits.days) * 86_400)
        var cookie = cookie
        cookie.expires = cookie.expires.map { min($0, latest) }
        cookie.isHostOnly = cookie.isHostOnly || suffixes.isPublicSuffix(cookie.domain)
        return cookie
    }

    /// Whether a secure connection would send a cookie together with a secure one of the same name. An attacker on the
    /// insecure connection could replace the secure cookie.
    private func wouldShadow(_ cookie: Cookie, at now: Date) -> Bool {
        let host = CookieHost(canonical: cookie.domain)
        return (buckets[key(of: host)] ?? []).contains { entry in
            let old = entry.cookie
            return old.isSecure && !old.isExpired(at: now) && old.nameBytes == cookie.nameBytes
                && (host.matches(domain: old.domain)
                    || CookieHost(canonical: old.domain).matches(domain: cookie.domain))
                && CookiePathRule.matches(cookie.path, cookiePath: old.path)
        }
    }

    // MARK: Sending

    /// The cookies for a URL, in the order of sending.
    package func cookies(for url: HTTPURL, isSecure: Bool, now: Date) -> [Cookie] {
        let bucket = buckets[key(of: CookieHost(url))] ?? []
        return places(in: bucket, for: url, isSecure: isSecure, now: now).map { bucket[$0].cookie }
    }

    /// The value of the `Cookie` field for a URL; `nil` without cookies. The cookies in it count as used.
    package mutating func header(for url: HTTPURL, isSecure: Bool, now: Date) -> [UInt8]? {
        let key = key(of: CookieHost(url))
        let bucket = buckets[key] ?? []
        var value: [UInt8] = []
        var sent: [Int] = []
        for place in places(in: bucket, for: url, isSecure: isSecure, now: now) {
            let cookie = bucket[place].cookie
            let named = cookie.nameBytes.isEmpty ? 0 : cookie.nameBytes.count + 1
            let length = (value.isEmpty ? 0 : 2) + named + cookie.valueBytes.count
            guard value.count + length <= limits.headerBytes else { continue }
            if !value.isEmpty { value += [UInt8(ascii: ";"), ByteClass.space] }
            if !cookie.nameBytes.isEmpty {
                value += cookie.nameBytes
                value.append(UInt8(ascii: "="))
            }
            value += cookie.valueBytes
            sent.append(place)
        }
        for place in sent { buckets[key]?[place].cookie.lastUsed = now }
        return value.isEmpty ? nil : value
    }

    /// The positions in a bucket of the cookies for a URL: longer paths first, then earlier cookies.
    private func places(in bucket: [Entry], for url: HTTPURL, isSecure: Bool, now: Date) -> [Int] {
        let host = CookieHost(url)
        let path = url.path
        let found = bucket.indices.filter { index in
            let cookie = bucket[index].cookie
            return (cookie.isHostOnly ? host.text == cookie.domain : host.matches(domain: cookie.domain))
                && (isSecure || !cookie.isSecure) && !cookie.isExpired(at: now)
                && CookiePathRule.matches(path, cookiePath: cookie.path)
        }
        return found.sorted { left, right in
            let (left, right) = (bucket[left], bucket[right])
            return (-left.cookie.path.utf8.count, left.cookie.created, left.ordinal) < (
                -right.cookie.path.utf8.count, right.cookie.created, right.ordinal
            )
        }
    }

    /// The bucket of a host: its registrable domain, or the whole name if it has none.
    private func key(of host: CookieHost) -> String {
        guard !host.isAddress, let domain = suffixes.registrableDomain(of: host.text) else { return host.text }
        return String(domain)
    }

    /// All cookies that have not expired, by domain, then in the order of arrival.
    package func allCookies(at now: Date) -> [Cookie] {
        let entries = buckets.values.flatMap { $0.filter { !$0.cookie.isExpired(at: now) } }
        let sorted = entries.sorted { left, right in
            (left.cookie.domain, left.ordinal) < (right.cookie.domain, right.ordinal)
        }
        return sorted.map(\.cookie)
    }

    // MARK: Removal

    /// Removes the cookies that pass a test; returns their number.
    @discardableResult package mutating func remove(where isUnwanted: (Cookie) -> Bool) -> Int {
        let before = count
        for key in buckets.keys { remove(from: key, where: isUnwanted) }
        if count < before { revision &+= 1 }
        return before - count
    }

    private mutating func remove(from key: String, where isUnwanted: (Cookie) -> Bool) {
        guard let bucket = buckets[key] else { return }
        let rest = bucket.filter { !isUnwanted($0.cookie) }
        count -= bucket.count - rest.count
        if rest.count < bucket.count { buckets[key] = rest.isEmpty ? nil : rest }
    }

    /// Evicts cookies beyond the limits after one was added to a bucket: first expired ones, then insecure ones, then
    /// the others, each time the least recently used (RFC 6265bis §5.7).
    ///
    /// Insecure ones are evicted first so that an attacker who can only write to `http` cannot evict secure ones.
    /// - Returns: whether any was evicted.
    private mutating func evict(from key: String, now: Date) -> Bool {
        let before = count
        if let bucket = buckets[key], bucket.count > limits.perDomain {
            remove(from: key) { $0.isExpired(at: now) }
            if count < before { revision &+= 1 }
            while let bucket = buckets[key], bucket.count > limits.perDomain, let place = stalest(of: bucket) {
                drop(from: key, at: place)
            }
        }
        if count > limits.total { remove { $0.isExpired(at: now) } }
        while count > limits.total, let (key, place) = stalest() { drop(from: key, at: place) }
        return count < before
    }

    /// The number of cookies above which a domain loses cookies first. Every client should store at least this number
    /// (RFC 6265bis §6.1).
    private static let fairShare = 50

    /// The cookie of a bucket to evict.
    private func stalest(of bucket: [Entry]) -> Int? {
        bucket.indices.min { rank(bucket[$0], isFull: true) < rank(bucket[$1], isFull: true) }
    }

    /// The cookie of all to evict.
    private func stalest() -> (key: String, place: Int)? {
        var best: (key: String, place: Int, rank: (Int, Date, UInt64))?
        for (key, bucket) in buckets {
            let isFull = bucket.count > CookieStore.fairShare
            for place in bucket.indices {
                let rank = rank(bucket[place], isFull: isFull)
                if let found = best, found.rank < rank { continue }
                best = (key, place, rank)
            }
        }
        return best.map { ($0.key, $0.place) }
    }

    /// The rank of a cookie in the order of eviction.
    private func rank(_ entry: Entry, isFull: Bool) -> (kind: Int, lastUsed: Date, ordinal: UInt64) {
        (isFull ? (entry.cookie.isSecure ? 1 : 0) : 2, entry.cookie.lastUsed, entry.ordinal)
    }

    private mutating func drop(from key: String, at place: Int) {
        buckets[key]?.remove(at: place)
        if buckets[key]?.isEmpty ?? false { buckets[key] = nil }
        count -= 1
        revision &+= 1
    }
}
