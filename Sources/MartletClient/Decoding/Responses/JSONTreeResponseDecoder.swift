/// Makes a tree of a body that is JSON.
public struct JSONTreeResponseDecoder: ResponseDecoder {
    /// Whether members that are `null` are left out.
    private let removesNulls: Bool

    /// A decoder.
    /// - Parameter removingNulls: Whether members that are `null` are left out, see ``JSONValue/removingNulls()``.
    public init(removingNulls: Bool = false) {
        removesNulls = removingNulls
    }

    /// JSON under any of its names.
    public var acceptableContentTypes: [String] { JSONTreeResponseDecoder.contentTypes }

    /// What servers call JSON.
    static let contentTypes = ["application/json", "text/json", "text/javascript", "application/*+json"]

    /// The tree.
    /// - Throws: A ``JSONError``.
    public func decode(_ exchange: HTTPExchange) throws -> JSONValue {
        let value = try exchange.json
        return removesNulls ? value.removingNulls() : value
    }
}

extension ResponseDecoder where Self == JSONTreeResponseDecoder {
    /// The body as a tree of JSON.
    public static var json: JSONTreeResponseDecoder { JSONTreeResponseDecoder() }

    /// The body as a tree of JSON, without members that are `null` if so asked.
    public static func json(removingNulls: Bool) -> JSONTreeResponseDecoder {
        JSONTreeResponseDecoder(removingNulls: removingNulls)
    }
}
