import MartletTesting

/// The routes of a peer: those of `martlet serve`, and a gate that holds requests until all are there.
enum PeerRoutes {
    /// The routes.
    /// - Parameter counts: What `/counts` tells.
    static func handler(_ gate: Gate, counts: @escaping @Sendable () -> String?) -> OriginHandler {
        let standard = StandardRoutes().handler
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
            default: return try await standard.respond(to: request)
            }
        }
    }
}
