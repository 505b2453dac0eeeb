public import FoundationEssentials
public import MartletCore

/// The problem details of a response with the content type `application/problem+json` (RFC 9457), as an error.
///
/// ```swift
/// let api = try session.host("https://api.example.com") { $0.errors = .problem }
/// do { … } catch let problem as HTTPProblem { print(problem.type, problem.extensions["balance"]?.intValue ?? 0) }
/// ```
///
/// A member with a value of the wrong type is ignored (RFC 9457 §3.1). The texts are those of the server.
public struct HTTPProblem: LocalizedError, Sendable, CustomStringConvertible {
    /// The identifier of the problem's type: a URI. `about:blank` by default: the status describes the problem.
    public var type = "about:blank"
    /// A summary of the problem's type, for people.
    public var title: String?
    /// The status that the server generated, 100–999. A proxy may have replaced the status of the response.
    public var status: Int?
    /// An explanation of this occurrence, for people.
    public var detail: String?
    /// The identifier of this occurrence: a URI.
    public var instance: String?
    /// The other members of the document, in order.
    public var extensions = JSONObject()
    /// The response; `nil` for a problem that was not received.
    public var exchange: HTTPExchange?

    /// Creates a problem of the type `about:blank`, without details.
    public init() {}

    /// Creates a problem from the members of a document.
    /// - Parameter base: The URL of the document. Relative references in ``type`` and ``instance`` are resolved against
    ///   it; with `nil` they are unchanged.
    public init(_ members: JSONObject, base: HTTPURL? = nil) {
        func uri(_ name: String) -> String? {
            guard let text = members[name]?.stringValue else { return nil }
            // A colon before the first delimiter ends a scheme (RFC 3986 §4.2), such as that of a URN.
            let isAbsolute = text.utf8.first { ":/?#".utf8.contains($0) } == UInt8(ascii: ":")
            return isAbsolute ? text : (try? base?.resolving(text))?.absoluteString ?? text
        }
        type = uri("type") ?? type
        instance = uri("instance")
        title = members["title"]?.stringValue
        detail = members["detail"]?.stringValue
        status = members["status"]?.intValue.flatMap { (100...999).contains($0) ? $0 : nil }
        let known: Set = ["type", "title", "status", "detail", "instance"]
        extensions = JSONObject(members.filter { !known.contains($0.name) })
    }

    /// The request, if there is one, then the status, the title, the detail and the type. The URL has no secrets, and
    /// the texts of the server have at most 256 bytes, without control characters.
    public var description: String {
        let request = exchange.map { "\($0.request.method.rawValue) \($0.url.redacted): " } ?? ""
        let status = (exchange?.statusCode ?? status).map(String.init)
        let text = [title, detail].compactMap(\.self).joined(separator: ": ") + " (\(type))"
        return "\(request)\(status.map { "\($0) " } ?? "")\(DecodingErrorText.beginning(of: text.utf8))"
    }

    /// The same as ``description``, for `localizedDescription`.
    public var errorDescription: String? { description }
}

extension HTTPExchange {
    /// The problem details in the body; `nil` if the content type is not `application/problem+json`, or the body is not
    /// a JSON object. It is parsed on each access.
    public var problem: HTTPProblem? {
        guard contentType?.essence == "application/problem+json", let members = (try? json)?.objectValue else {
            return nil
        }
        var problem = HTTPProblem(members, base: url)
        problem.exchange = self
        return problem
    }
}

extension HTTPError {
    /// The problem details in the body of the response, as ``HTTPExchange/problem``; `nil` without a response.
    public var problem: HTTPProblem? { exchange?.problem }
}

extension ErrorMapper {
    /// Throws the ``HTTPProblem`` in a response with problem details. Other errors are unchanged.
    public static var problem: ErrorMapper { .problem { problem, _ in problem } }

    /// Passes the ``HTTPProblem`` in a response to a closure, and throws the error that it returns. Other errors are
    /// unchanged.
    /// - Parameter make: Returns the error to throw, which may be the ``HTTPError``. It must not block.
    public static func problem(
        _ make: @escaping @Sendable (_ problem: HTTPProblem, _ error: HTTPError) -> any Error
    ) -> ErrorMapper { ErrorMapper { error in error.problem.map { make($0, error) } ?? error } }
}
