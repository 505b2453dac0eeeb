/// The differences that are allowed between the requests of Martlet and curl, with reasons.
enum SentDifference: CaseIterable {
    /// The field names the client.
    case userAgent
    /// Martlet requests codings by default, curl on demand.
    case acceptEncoding
    /// curl sends proxies `Proxy-Connection: Keep-Alive`, which no RFC defines: connections are reused without it.
    case proxyConnection
    /// If a challenge is expected, curl sends the first request without its body. Martlet sends the body: the challenge
    /// may not come, and then the call is complete.
    case bodyBeforeChallenge
    /// curl also sends the caller's content fields with a GET without a body (RFC 9110 §15.4 would have them removed).
    case contentTypeOfNothing

    /// Among cookies of one path Martlet sends earlier ones first, as RFC 6265bis §5.8.3 specifies, curl later ones.
    case cookieOrder
    /// When Martlet percent-encodes a `Location`, digits are upper case, as RFC 3986 §2.1 specifies; curl uses lower
    /// case.
    case caseOfHexDigits

    /// The two differences that are in every request.
    static let always: Set<SentDifference> = [.userAgent, .acceptEncoding]

    /// Removes the difference from a request.
    func remove(from request: inout SentRequest) {
        switch self {
        case .userAgent: request.drop("user-agent")
        case .acceptEncoding: request.drop("accept-encoding")
        case .proxyConnection: request.drop("proxy-connection")
        case .bodyBeforeChallenge:
            guard request.value(of: "authorization") == nil else { return }
            request.drop("content-length")
            request.body = ""
        case .contentTypeOfNothing:
            if request.method == "GET" { request.drop("content-type") }
        case .cookieOrder:
            request.change("cookie") { $0.split(separator: "; ").sorted().joined(separator: "; ") }
        case .caseOfHexDigits:
            request.target = request.target.replacing(/%[0-9a-f]{2}/) { $0.output.uppercased() }
        }
    }
}
