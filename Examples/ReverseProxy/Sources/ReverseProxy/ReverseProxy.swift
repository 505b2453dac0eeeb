import HTTPTypes
import Hummingbird
import Martlet
import NIOCore

/// A request's context, with the address of the client.
struct ProxyContext: RequestContext, RemoteAddressRequestContext {
    var coreContext: CoreRequestContextStorage
    let remoteAddress: NIOCore.SocketAddress?

    init(source: ApplicationRequestContextSource) {
        coreContext = CoreRequestContextStorage(source: source)
        remoteAddress = source.channel.remoteAddress
    }
}

/// Forwards requests to another server.
///
/// Bodies are streamed in both directions. A chunk is read when the other side has accepted the previous one. A slow
/// client therefore slows down the server, and no body is stored in memory.
struct ReverseProxy: HTTPResponder {
    typealias Context = ProxyContext

    private let upstream: HTTPURL
    private let session: HTTPSession

    /// Creates a proxy.
    /// - Parameters:
    ///   - upstream: The URL of the server, such as `http://127.0.0.1:3000`. Its path is ignored.
    ///   - timeouts: The timeouts of requests to it. After a timeout the client receives 504.
    init(to upstream: HTTPURL, timeouts: Timeouts = Timeouts()) {
        var configuration = SessionConfiguration.default
        configuration.timeouts = timeouts
        // Redirects and content codings pass to the client unchanged, and the client's own fields to the server.
        configuration.redirects = .doNotFollow
        configuration.decompressesResponses = false
        configuration.userAgent = nil
        configuration.proxy = .none
        configuration.pool.connectionsPerHost = 256
        self.upstream = upstream
        session = HTTPSession(configuration: configuration)
    }

    func respond(to request: Request, context: ProxyContext) async throws -> Response {
        guard let path = request.head.path, path.hasPrefix("/") else {
            throw Hummingbird.HTTPError(.badRequest)
        }
        var head = HTTPRequest(
            method: request.method, scheme: upstream.scheme.rawValue, authority: upstream.hostFieldValue,
            path: path)
        head.headerFields = request.headers.forwarded(
            from: context.remoteAddress?.ipAddress, host: request.head.authority)
        do {
            let open = try await session.open(head, body: request.forwardedBody)
            return Response(
                status: open.status, headers: open.headers.withoutHopByHopFields,
                body: open.forwardedBody(to: request))
        } catch let error as Martlet.HTTPError {
            context.logger.warning("the upstream server did not respond", metadata: ["error": "\(error)"])
            return Response(status: error.isTimeout ? .gatewayTimeout : .badGateway)
        }
    }
}

extension Request {
    /// The body for the upstream server, read once as it is sent.
    fileprivate var forwardedBody: HTTPBody {
        let length = headers[.contentLength].flatMap { UInt64($0) }
        if length == nil, headers[.transferEncoding] == nil { return .none }
        return .once(body.map { $0.readableBytesView }, length: length, contentType: nil)
    }
}

extension OpenResponse {
    /// Returns the body for the client. If the client disconnects, writing fails and the connection to the upstream
    /// server is closed.
    /// closed.
    fileprivate func forwardedBody(to request: Request) -> Hummingbird.ResponseBody {
        if request.method == .head || status == .noContent || status == .notModified { return .init() }
        return .init(contentLength: expectedContentLength.map { Int($0) }) { [body] writer in
            for try await chunk in body { try await writer.write(ByteBuffer(bytes: chunk)) }
            try await writer.finish(nil)
        }
    }
}
