/// One thing that a service can be asked, with the type of its answer.
///
/// ```swift
/// struct UserByName: HTTPEndpoint {
///     typealias Response = User
///     var name: String
///     var path: String { "users/\(name)" }
/// }
///
/// let user = try await api.call(UserByName(name: "anna"))
/// ```
///
/// Everything but the path and the answer has a default: GET, without parameters, body and fields, a status of 2xx
/// demanded, JSON decoded. An answer of the type `HTTPExchange` is the exchange itself, and one of `Void` is thrown away.
public protocol HTTPEndpoint<Response> {
    /// What comes back.
    associatedtype Response
    /// What goes along.
    associatedtype Parameters: Encodable = ParameterValue

    /// How; GET by default.
    var method: HTTPRequest.Method { get }
    /// Where, below the host's base; see ``HTTPHost/url(for:)``.
    var path: String { get }
    /// What goes along; nothing by default.
    var parameters: Parameters { get }
    /// A body as it is; `nil`, the default, for what the parameters make.
    var body: HTTPBody? { get }
    /// Fields, which take the place of the host's; none by default.
    var headers: HTTPFields { get }
    /// How parameters are written; `nil`, the default, for the host's way.
    var encoding: ParameterEncoding? { get }
    /// What the call does otherwise; `nil`, the default, for the host's options.
    var options: RequestOptions? { get }
    /// Whether a status that is not 2xx is an error, before ``response(from:)`` is asked; `true` by default.
    var validatesStatus: Bool { get }

    /// Makes the answer of the exchange. What it throws is what the call throws.
    func response(from exchange: HTTPExchange) throws -> Response
}

extension HTTPEndpoint {
    /// GET.
    public var method: HTTPRequest.Method { .get }
    /// None.
    public var body: HTTPBody? { nil }
    /// None.
    public var headers: HTTPFields { HTTPFields() }
    /// The host's.
    public var encoding: ParameterEncoding? { nil }
    /// The host's.
    public var options: RequestOptions? { nil }
    /// Yes.
    public var validatesStatus: Bool { true }
}

extension HTTPEndpoint where Parameters == ParameterValue {
    /// None.
    public var parameters: ParameterValue { .null }
}

extension HTTPEndpoint where Response: Decodable {
    /// The body, decoded as JSON.
    public func response(from exchange: HTTPExchange) throws -> Response {
        try exchange.decode()
    }
}

extension HTTPEndpoint where Response == HTTPExchange {
    /// The exchange.
    public func response(from exchange: HTTPExchange) -> HTTPExchange { exchange }
}

extension HTTPEndpoint where Response == Void {
    /// Nothing.
    public func response(from exchange: HTTPExchange) {}
}
