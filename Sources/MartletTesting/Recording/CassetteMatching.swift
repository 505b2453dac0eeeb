public import HTTPTypes
import MartletContent
import MartletCore
import MartletURL

/// The rule by which a cassette finds the recorded response to a request.
///
/// By default method and URL must be equal, the query included. Both requests are compared with masked secrets, so
/// that a different token does not matter.
public struct CassetteMatching: Sendable {
    /// The comparison of bodies.
    public enum Body: Hashable, Sendable {
        /// Bodies are not compared.
        case ignored
        /// The bytes are equal.
        case exact
        /// The JSON values are equal: the order of members and white space do not matter. Bodies that are not JSON are
        /// compared by their bytes.
        case json
        /// The items of the forms are equal: only the order of items with the same name matters.
        case form
    }

    /// Whether only the order of query items with the same name matters; `false` by default.
    public var ignoresQueryOrder = false
    /// The decoded names of query items that are not compared, such as a time; none by default.
    public var ignoredQueryItems: Set<String> = []
    /// The header fields whose values must be equal, or that both requests lack; none by default.
    public var headers: [HTTPField.Name] = []
    /// The comparison of bodies; `.ignored` by default. Otherwise a body that can be read only once is collected before
    /// it is sent.
    public var body = Body.ignored
    /// A function that replaces all other rules; `nil` by default. It is called for each recorded request in order,
    /// and must not block. All bodies are collected for it.
    public var custom: (@Sendable (_ recorded: CassetteEntry, _ request: CassetteRequest) -> Bool)?

    /// Creates the default rule.
    public init() {}

    /// Returns a rule that is a function; see ``custom``.
    public static func custom(
        _ isMatch: @escaping @Sendable (_ recorded: CassetteEntry, _ request: CassetteRequest) -> Bool
    ) -> CassetteMatching {
        var rule = CassetteMatching()
        rule.custom = isMatch
        return rule
    }

    /// Whether the rule compares bodies.
    var needsBody: Bool { body != .ignored || custom != nil }

    /// Returns the parts of a request that the rule compares.
    func key(of request: CassetteRequest) -> CassetteKey {
        let url = request.url
        var items = url.query.map { CassetteKey.items($0) } ?? []
        items.removeAll { ignoredQueryItems.contains($0.name) }
        return CassetteKey(
            method: request.method.rawValue, origin: "\(url.scheme)://\(url.hostFieldValue)", path: url.path,
            query: ignoresQueryOrder ? CassetteKey.sorted(items) : items,
            headers: headers.map { request.headers[values: $0] }, body: key(ofBody: request.body))
    }

    private func key(ofBody bytes: [UInt8]) -> CassetteKey.Body {
        switch body {
        case .ignored: .ignored
        case .exact: .bytes(bytes)
        case .json: (try? JSONValue(parsing: bytes)).map { .json($0) } ?? .bytes(bytes)
        case .form: .form(CassetteKey.sorted(CassetteKey.items(String(decoding: bytes, as: UTF8.self))))
        }
    }

    /// Returns the differences of two keys of this rule, and their weight: greater for more important parts.
    func differences(_ recorded: CassetteKey, _ sent: CassetteKey) -> (texts: [String], weight: Int) {
        var (texts, weight): ([String], Int) = ([], 0)
        func compare(_ name: String, _ one: String, _ other: String, _ cost: Int) {
            guard one != other else { return }
            texts.append("\(name): recorded \(CassetteKey.quoted(one)), sent \(CassetteKey.quoted(other))")
            weight += cost
        }
        compare("method", recorded.method, sent.method, 4)
        compare("origin", recorded.origin, sent.origin, 8)
        compare("path", recorded.path, sent.path, 4)
        compare("query", CassetteKey.text(recorded.query), CassetteKey.text(sent.query), 1)
        for (index, name) in headers.enumerated() where recorded.headers[index] != sent.headers[index] {
            let values = [recorded, sent].map { $0.headers[index].joined(separator: ", ") }
            compare("field \(name.rawName)", values[0], values[1], 1)
        }
        if let text = recorded.body.difference(from: sent.body) {
            texts.append("body: \(text)")
            weight += 1
        }
        return (texts, weight)
    }
}

/// The parts of a request that a matching rule compares.
struct CassetteKey: Equatable, Sendable {
    /// An item of a query or form as it was written, and its decoded name.
    struct Item: Equatable, Sendable {
        let name: String
        let text: String
    }

    enum Body: Equatable, Sendable {
        case ignored
        case bytes([UInt8])
        case json(JSONValue)
        case form([Item])
    }

    let method: String
    let origin: String
    let path: String
    let query: [Item]
    let headers: [[String]]
    let body: Body

    static func items(_ text: String) -> [Item] {
        text.split(separator: "&").map { pair in
            Item(name: FormEncoding.decoded(String(pair)).first?.name ?? "", text: String(pair))
        }
    }

    /// Returns the items in the order of their names; those with the same name in their own order.
    static func sorted(_ items: [Item]) -> [Item] {
        items.enumerated().sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }.map(\.element)
    }

    static func text(_ items: [Item]) -> String { items.map(\.text).joined(separator: "&") }

    /// Returns a text in quotes, shortened for a message.
    static func quoted(_ text: String) -> String { "“\(text.prefix(200))\(text.count > 200 ? "…" : "")”" }
}

extension CassetteKey.Body {
    /// Returns a description of the difference between a recorded body and another one; `nil` if they are equal.
    func difference(from sent: CassetteKey.Body) -> String? {
        switch (self, sent) {
        case _ where self == sent: return nil
        case (.json(let one), .json(let other)): return "JSON differs at \(Self.path(one, other))"
        case (.form(let one), .form(let other)):
            let (recorded, sent) = (CassetteKey.text(one), CassetteKey.text(other))
            return "recorded form \(CassetteKey.quoted(recorded)), sent \(CassetteKey.quoted(sent))"
        case (.bytes(let one), .bytes(let other)):
            let offset = zip(one, other).enumerated().first { $1.0 != $1.1 }?.offset ?? min(one.count, other.count)
            return "recorded \(one.count) bytes, sent \(other.count), different from byte \(offset)"
        default: return "only one of the bodies is JSON"
        }
    }

    /// Returns the path of the first difference. The parser limits the depth of the recursion.
    private static func path(_ one: JSONValue, _ other: JSONValue) -> String {
        switch (one, other) {
        case (.object(let left), .object(let right)):
            for name in left.names + right.names where left[name] != right[name] {
                guard let inner = left[name], let outer = right[name] else { return ".\(name)" }
                return ".\(name)\(path(inner, outer))"
            }
        case (.array(let left), .array(let right)):
            for (index, pair) in zip(left, right).enumerated() where pair.0 != pair.1 {
                return "[\(index)]\(path(pair.0, pair.1))"
            }
            return left.count == right.count ? "" : "[\(min(left.count, right.count))]"
        default: break
        }
        return ""
    }
}
