import Martlet
import MartletTesting

/// A request to abandon, drawn so that every phase of a call is frequent.
struct Errand: Sendable {
    private let url: HTTPURL?
    private let body: HTTPBody
    /// The options of the call that override the session's.
    var options = RequestOptions()

    private static let upload = [UInt8](repeating: 7, count: 400_000)

    /// Draws a random request.
    init(_ peer: Peer, _ generator: inout SeededGenerator) {
        let isSecure = generator.next() % 10 == 0
        let paths = [
            "/bytes/100", "/bytes/100", "/delay/0.002", "/delay/0.005", "/bytes/400000", "/chunked/100000",
            "/drip/4000?rate=400000", "/stall", "/stall/2000", "/upload",
        ]
        let path = paths[Int(generator.next() % UInt64(paths.count))]
        body = path == "/upload" ? .bytes(Errand.upload) : .none
        var url = try? peer.url(path, isSecure: isSecure)
        // One request in eight uses a name that must be looked up.
        if generator.next() % 8 == 0, let port = try? peer.number(isSecure ? "secure" : "plain") {
            url = try? HTTPURL("\(isSecure ? "https" : "http")://localhost:\(port)\(path)")
        }
        self.url = url
    }

    /// Sends the request and reads its response.
    func run(_ session: HTTPSession) async throws {
        guard let url else { throw SoakFailure("the peer has no port") }
        _ = try await session.send(
            body.length == 0 ? .get : .post, url, body: body, options: options
        ).validated()
    }
}
