import MartletTesting

/// The routes of a peer: the routes of `martlet serve`, a gate that holds requests until all have arrived, and files of
/// the test pattern of any length with a validator.
enum PeerRoutes {
    /// Returns the handler of the routes.
    /// - Parameter counts: The response to `/counts`.
    static func handler(_ gate: Gate, counts: @escaping @Sendable () -> String?) -> OriginHandler {
        let standard = StandardRoutes().handler
        let webSockets = WebSocketPeer()
        return OriginHandler { request in
            switch request.path {
            case "/hold":
                await gate.pass()
                return .text("held")
            case "/held": return .text("\(gate.heldCount)")
            case "/open":
                gate.open()
                return .text("open")
            case "/shut":
                gate.shut()
                return .text("shut")
            case "/counts": return .text(counts() ?? "")
            case let path where path.hasPrefix("/file/"):
                guard let count = UInt64(path.dropFirst(6)) else { return .text("how long?", status: 404) }
                return OriginContent(body: .pattern(count), entityTag: "\"\(count)\"").response(to: request)
            case let path where path.hasPrefix("/socket"): return try await webSockets.respond(to: request)
            default: return try await standard.respond(to: request)
            }
        }
    }
}
