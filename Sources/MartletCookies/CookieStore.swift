package import MartletURL
package import FoundationEssentials
import MartletWire

/// The stored cookies, and the selection of cookies for a URL (RFC 6265bis §5.7, §5.8). The time is passed in.
///
/// All cookies of a registrable domain are in one bucket, so that a lookup does not depend on the number of others.
package struct CookieStore: Sendable {
    /// A cookie, and its number in the order of arrival, which orders cookies with the same time.
    struct Entry: Sendable {
        var cookie: Cookie
        let ordinal: UInt64
    }

    /// The limits on cookies.
    package let limits: CookieLimits
    /// The public suffixes, which must not change while the store has cookies.
    package let suffixes: any PublicSuffixes
    /// The number of cookies, including expired ones that are not removed yet.
    package private(set) var count = 0
    /// The number of changes: cookies that were stored or removed. The use of a cookie is not a change.
    package private(set) var revision: UInt64 = 0
    /// The cookies by registrable domain, or by the whole host if it has none.
    private var buckets: [String: [Entry]] = [:]
    private var nextOrdinal: UInt64 = 0

    /// Creates a store without cookies.
    package init(limits: CookieLimits, suffixes: any PublicSuffixes) {
        (self.limits, self.suffixes) = (limits, suffixes)
    }

    // MARK: Storing

    /// Stores the cookies of a response, given by its `Set-Cookie` fields, in order.
    /// - Parameter isSecure: Whether the connection counts as secure.
    /// - Returns: The fields that were not stored, with the reasons.
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

    /// Stores a cookie, replaces the same cookie (`Cookie.isSame(as:)`), and evicts cookies beyond the limits.
    ///
    /// An expired cookie only removes the same cookie. A cookie for a public suffix is restricted to that host.
    /// - Returns: Whether the cookie is stored now.
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

    /// Whether a secure connection would send a cookie together with a stored secure cookie of the same name. An
    /// attacker on an insecure connection could override the secure cookie in this way.
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

    /// Returns the cookies for a URL, in sending order.
    package func cookies(for url: HTTPURL, isSecure: Bool, now: Date) -> [Cookie] {
        let bucket = buckets[key(of: CookieHost(url))] ?? []
        return places(in: bucket, for: url, isSecure: isSecure, now: now).map { bucket[$0].cookie }
    }

    /// Returns the value of the `Cookie` field for a URL; `nil` without cookies. The sent cookies count as used.
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

    /// Returns the positions in a bucket of the cookies for a URL: longer paths first, then older cookies.
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

    /// Returns the key of a host's bucket: its registrable domain, or the whole host if it has none.
    private func key(of host: CookieHost) -> String {
        guard !host.isAddress, let domain = suffixes.registrableDomain(of: host.text) else { return host.text }
        return String(domain)
    }

    /// Returns all cookies that have not expired, by domain, then in the order of arrival.
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

    /// Evicts cookies beyond the limits after a cookie was added to a bucket: expired ones first, then those of domains
    /// with too many cookies (insecure ones first), then any; the least recently used first (RFC 6265bis §5.7).
    ///
    /// Insecure cookies are evicted first so that an attacker who can only respond over http cannot evict secure ones.
    /// - Returns: Whether any cookie was evicted.
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

    /// The number of cookies above which a domain loses cookies before other domains do (RFC 6265bis §6.1).
    private static let fairShare = 50

    /// Returns the position of the next cookie to evict from a bucket.
    private func stalest(of bucket: [Entry]) -> Int? {
        bucket.indices.min { rank(bucket[$0], isFull: true) < rank(bucket[$1], isFull: true) }
    }

    /// Returns the next cookie to evict from the whole store.
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

    /// Returns the rank of a cookie in the order of eviction.
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
