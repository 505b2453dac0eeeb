import MartletURL
package import MartletCore
package import FoundationEssentials
import MartletWire

/// The cookies, and which of them go where (RFC 6265bis §5.7, §5.8). The present is passed in; nothing here
/// waits.
///
/// Cookies are kept by registrable domain: those that can go to a host are on one shelf, however many there
/// are of others.
package struct CookieStore: Sendable {
    /// A cookie, and its number in the order of arrival, which tells apart what was made at one instant.
    struct Entry: Sendable {
        var cookie: Cookie
        let ordinal: UInt64
    }

    /// The limits.
    package let limits: CookieLimits
    /// The public suffixes, which do not change while there are cookies.
    package let suffixes: any PublicSuffixes
    /// How many cookies there are, expired ones that nobody has met yet included.
    package internal(set) var count = 0
    /// Counts what changed: cookies that were stored and that went away, but not that they were used.
    package internal(set) var revision: UInt64 = 0
    /// The cookies by the registrable domain of theirs, or by the whole name where there is none.
    var shelves: [String: [Entry]] = [:]
    private var nextOrdinal: UInt64 = 0

    /// A store without cookies.
    package init(limits: CookieLimits, suffixes: any PublicSuffixes) {
        self.limits = limits
        self.suffixes = suffixes
    }

    // MARK: Storing

    /// Stores what a response sets.
    ///
    /// - Parameters:
    ///   - fields: the values of its `Set-Cookie` fields, in order.
    ///   - url: the address it came from.
    ///   - isSecure: whether the connection counts as secure.
    ///   - now: the present.
    /// - Returns: what was not stored, and why.
    package mutating func receive(
        _ fields: [[UInt8]], from url: HTTPURL, isSecure: Bool, now: Date
    ) -> [CookieRefusal] {
        var refusals: [CookieRefusal] = []
        let rule = CookieAcceptanceRule(url: url, isSecure: isSecure, suffixes: suffixes, now: now)
        for (index, field) in fields.prefix(limits.perResponse).enumerated() {
            var name = ""
            do throws(CookieRefusal.Reason) {
                let request = try SetCookieParser.parse(field[...])
                name = String(decoding: request.name, as: UTF8.self)
                let cookie = try rule.cookie(request)
                if !isSecure, !cookie.isSecure, wouldShadow(cookie, at: now) { throw .shadowsSecureCookie }
                insert(cookie, now: now)
            } catch {
                refusals.append(CookieRefusal(index: index, name: name, reason: error))
            }
        }
        if fields.count > limits.perResponse {
            refusals.append(CookieRefusal(index: limits.perResponse, name: "", reason: .overLimit))
        }
        return refusals
    }

    /// Stores a cookie, in the place of the same one if there is such, and evicts what is then too much.
    ///
    /// One that is expired removes the same one. A domain that is a public suffix, by the list there is now,
    /// is narrowed to the host of its name; the end is held within the limit.
    ///
    /// - Returns: whether it is there now.
    @discardableResult
    package mutating func insert(_ given: Cookie, now: Date) -> Bool {
        var cookie = fitted(given, now: now)
        let key = key(of: CookieHost(canonical: cookie.domain))
        let isExpired = cookie.isExpired(at: now)
        if let old = shelves[key]?.firstIndex(where: { $0.cookie.isSame(as: cookie) }) {
            revision &+= 1
            if !isExpired, let found = shelves[key]?[old].cookie, !found.isExpired(at: now) {
                cookie.created = found.created
                shelves[key]?[old].cookie = cookie
                return true
            }
            shelves[key]?.remove(at: old)
            count -= 1
        }
        if !isExpired {
            shelves[key, default: []].append(Entry(cookie: cookie, ordinal: nextOrdinal))
            nextOrdinal &+= 1
            count += 1
            revision &+= 1
        } else if shelves[key]?.isEmpty ?? false {
            shelves[key] = nil
        }
        guard evict(from: key, now: now) else { return !isExpired }
        return shelves[key]?.contains { $0.cookie.isSame(as: cookie) } ?? false
    }

    private func fitted(_ cookie: Cookie, now: Date) -> Cookie {
        let latest = now.addingTimeInterval(Double(limits.days) * 86_400)
        var cookie = cookie
        cookie.expires = cookie.expires.map { min($0, latest) }
        cookie.isHostOnly = cookie.isHostOnly || suffixes.isPublicSuffix(cookie.domain)
        return cookie
    }

    /// Whether a cookie would go, over a secure connection, where a secure one of its name goes: whoever can
    /// write to the insecure connection could put his own in the place of it.
    private func wouldShadow(_ cookie: Cookie, at now: Date) -> Bool {
        let host = CookieHost(canonical: cookie.domain)
        return (shelves[key(of: host)] ?? []).contains { entry in
            let old = entry.cookie
            return old.isSecure && !old.isExpired(at: now) && old.nameBytes == cookie.nameBytes
                && (host.matches(domain: old.domain)
                    || CookieHost(canonical: old.domain).matches(domain: cookie.domain))
                && CookiePathRule.matches(cookie.path, cookiePath: old.path)
        }
    }

    // MARK: Finding

    /// The cookies that go to an address, in the order they are sent.
    package func cookies(for url: HTTPURL, isSecure: Bool, now: Date) -> [Cookie] {
        let key = key(of: CookieHost(url))
        let shelf = shelves[key] ?? []
        return places(on: shelf, for: url, isSecure: isSecure, now: now).map { shelf[$0].cookie }
    }

    /// The value of the `Cookie` field for an address; nil when there is nothing to send.
    ///
    /// Notes that what is sent was used.
    package mutating func header(for url: HTTPURL, isSecure: Bool, now: Date) -> [UInt8]? {
        let key = key(of: CookieHost(url))
        let (value, sent) = value(of: shelves[key] ?? [], for: url, isSecure: isSecure, now: now)
        for place in sent { shelves[key]?[place].cookie.lastUsed = now }
        return value.isEmpty ? nil : value
    }

    /// The value of the field, and where on the shelf are those that are in it.
    private func value(
        of shelf: [Entry], for url: HTTPURL, isSecure: Bool, now: Date
    ) -> (value: [UInt8], sent: [Int]) {
        var value: [UInt8] = []
        var sent: [Int] = []
        for place in places(on: shelf, for: url, isSecure: isSecure, now: now) {
            let cookie = shelf[place].cookie
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
        return (value, sent)
    }

    /// Where on a shelf are those that go to an address: longer paths first, then earlier ones.
    private func places(on shelf: [Entry], for url: HTTPURL, isSecure: Bool, now: Date) -> [Int] {
        let host = CookieHost(url)
        let path = url.path
        let found = shelf.indices.filter { index in
            let cookie = shelf[index].cookie
            return (cookie.isHostOnly ? host.text == cookie.domain : host.matches(domain: cookie.domain))
                && (isSecure || !cookie.isSecure) && !cookie.isExpired(at: now)
                && CookiePathRule.matches(path, cookiePath: cookie.path)
        }
        return found.sorted { left, right in
            let (left, right) = (shelf[left], shelf[right])
            return (-left.cookie.path.utf8.count, left.cookie.created, left.ordinal)
                < (-right.cookie.path.utf8.count, right.cookie.created, right.ordinal)
        }
    }

    /// The shelf of a host: its registrable domain, or all of it when it has none.
    func key(of host: CookieHost) -> String {
        guard !host.isAddress, let domain = suffixes.registrableDomain(of: host.text) else {
            return host.text
        }
        return String(domain)
    }
}

extension CookieStore {
    /// All cookies that have not ended, by domain, then in the order they came.
    package func allCookies(at now: Date) -> [Cookie] {
        let entries = shelves.values.flatMap { $0.filter { !$0.cookie.isExpired(at: now) } }
        let sorted = entries.sorted { left, right in
            (left.cookie.domain, left.ordinal) < (right.cookie.domain, right.ordinal)
        }
        return sorted.map(\.cookie)
    }

    /// Removes the cookies that something is true of; returns how many.
    @discardableResult
    package mutating func remove(where isUnwanted: (Cookie) -> Bool) -> Int {
        let before = count
        for key in shelves.keys { remove(from: key, where: isUnwanted) }
        if count < before { revision &+= 1 }
        return before - count
    }

    private mutating func remove(from key: String, where isUnwanted: (Cookie) -> Bool) {
        guard let shelf = shelves[key] else { return }
        let rest = shelf.filter { !isUnwanted($0.cookie) }
        count -= shelf.count - rest.count
        if rest.count < shelf.count { shelves[key] = rest.isEmpty ? nil : rest }
    }

    /// Evicts what is too much after a cookie was put on a shelf: first what has ended, then what is not
    /// secure, then the rest, each time what was not used for longest (RFC 6265bis §5.7).
    ///
    /// That insecure ones go first keeps a network that can only write to `http` from washing secure ones
    /// out.
    ///
    /// - Returns: whether anything was evicted.
    mutating func evict(from key: String, now: Date) -> Bool {
        let before = count
        if let shelf = shelves[key], shelf.count > limits.perDomain {
            remove(from: key) { $0.isExpired(at: now) }
            if count < before { revision &+= 1 }
            while let shelf = shelves[key], shelf.count > limits.perDomain, let place = stalest(of: shelf) {
                drop(from: key, at: place)
            }
        }
        if count > limits.total { remove { $0.isExpired(at: now) } }
        while count > limits.total, let (key, place) = stalest() { drop(from: key, at: place) }
        return count < before
    }

    /// How many cookies a domain may have before it is the first to give some up: what every client should
    /// keep of one (RFC 6265bis §6.1).
    private static let fairShare = 50

    /// The cookie to give up of a shelf.
    private func stalest(of shelf: [Entry]) -> Int? {
        shelf.indices.min { rank(shelf[$0], isCrowded: true) < rank(shelf[$1], isCrowded: true) }
    }

    /// The cookie to give up of all.
    private func stalest() -> (key: String, place: Int)? {
        var best: (key: String, place: Int, rank: (Int, Date, UInt64))?
        for (key, shelf) in shelves {
            let isCrowded = shelf.count > CookieStore.fairShare
            for place in shelf.indices {
                let rank = rank(shelf[place], isCrowded: isCrowded)
                if let found = best, found.rank < rank { continue }
                best = (key, place, rank)
            }
        }
        return best.map { ($0.key, $0.place) }
    }

    /// The place in the order in which cookies are given up, the first least missed.
    private func rank(_ entry: Entry, isCrowded: Bool) -> (kind: Int, lastUsed: Date, ordinal: UInt64) {
        (isCrowded ? (entry.cookie.isSecure ? 1 : 0) : 2, entry.cookie.lastUsed, entry.ordinal)
    }

    private mutating func drop(from key: String, at place: Int) {
        shelves[key]?.remove(at: place)
        if shelves[key]?.isEmpty ?? false { shelves[key] = nil }
        count -= 1
        revision &+= 1
    }
}
