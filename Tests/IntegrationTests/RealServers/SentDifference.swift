/// In what the requests of Martlet and of curl may differ, and why.
enum SentDifference: CaseIterable {
    /// It names the client.
    case userAgent
    /// Martlet asks for codings by itself, curl on demand.
    case acceptEncoding
    /// curl tells proxies `Proxy-Connection: Keep-Alive`, which no RFC knows: connections are kept without it.
    case proxyConnection
    /// Told that a challenge will come, curl sends the first request without its body. Martlet sends it: nobody said that
    /// the challenge will come, and where it does not, the call is done.
    case bodyBeforeChallenge
    /// What the caller said of the body, curl says of the GET that has none, too (RFC 9110 §15.4 would have it removed).
    case contentTypeOfNothing

    /// Among cookies of one path Martlet has earlier ones first, as RFC 6265bis §5.8.3 says, curl later ones.
    case cookieOrder
    /// What Martlet percent-encodes of a `Location` has digits in upper case, as RFC 3986 §2.1 says, curl in lower case.
    case caseOfHexDigits

    /// The two differences that are in every request.
    static let always: Set<SentDifference> = [.userAgent, .acceptEncoding]

    /// Takes the difference out of a request.
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
