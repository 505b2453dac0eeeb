import Martlet

/// A scenario with a million small GETs to nginx, which closes each connection after a thousand requests.
struct KeepAlive: SoakScenario {
    let name = "keep-alive"

    /// The number of concurrent connections, each to a separate address, so that each carries its full thousand
    /// requests.
    private static let lanes = 4
    private static let requestsPerConnection = 1000

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let step = KeepAlive.lanes * KeepAlive.requestsPerConnection
        let count = max(1, (options.count ?? 1_000_000) / step) * step
        let peer = try Peer(["nginx", "\(KeepAlive.lanes)", "\(KeepAlive.requestsPerConnection)"])
        defer { peer.stop() }
        let port = try peer.number("port")
        let urls = try (1...KeepAlive.lanes).map { try HTTPURL("http://127.0.1.\($0):\(port)/") }
        let status = try HTTPURL("http://127.0.1.1:\(port)/status")
        // These requests load everything that the first requests load, on connections that are not counted.
        let control = peer.session()
        for url in urls { for _ in 0..<500 { _ = try await control.text(url) } }
        let descriptors = ProcessFigures.descriptors
        let acceptedBefore = try await accepted(control, status)

        let session = peer.session { configuration in
            configuration.pool.connectionsPerHost = 1
        }
        var samples: [(x: Double, y: Double)] = []
        var errors: [String: Int] = [:]
        var resent = 0
        let rounds = 20
        for round in 0..<rounds {
            let upper = count / KeepAlive.lanes * (round + 1) / rounds
            let lower = count / KeepAlive.lanes * round / rounds
            let results = await withTaskGroup(of: Lane.self) { group in
                for url in urls {
                    group.addTask { await KeepAlive.fetch(url, upper - lower, session) }
                }
                return await group.reduce(into: [Lane]()) { $0.append($1) }
            }
            for lane in results {
                errors.merge(lane.errors) { $0 + $1 }
                resent += lane.resent
            }
            samples.append((Double(upper * KeepAlive.lanes), Double(ProcessFigures.residentBytes)))
        }
        report.add("errors in \(count) requests", errors.description, target: "none", isMet: errors.isEmpty)
        report.add("requests sent twice", resent, exactly: 0)
        report.add(
            "connections opened", Int(session.diagnostics.pool.opened),
            exactly: count / KeepAlive.requestsPerConnection)
        report.add(
            "connections that nginx accepted", try await accepted(control, status) - acceptedBefore,
            exactly: count / KeepAlive.requestsPerConnection)
        // The first tenth fills the reused buffers.
        let slope = Slope(samples.dropFirst(rounds / 10))
        report.add(
            "memory slope over a million requests", slope.rise * 1_000_000 / 1024, atMost: 1024, unit: "KiB")
        await session.finishAndInvalidate()
        report.add("leaked descriptors", ProcessFigures.descriptors - descriptors, exactly: 0)
    }

    private struct Lane: Sendable {
        var errors: [String: Int] = [:]
        var resent = 0
    }

    private static func fetch(_ url: HTTPURL, _ count: Int, _ session: HTTPSession) async -> Lane {
        var lane = Lane()
        for _ in 0..<count {
            do {
                let exchange = try await session.send(.get, url).validated()
                if exchange.body.count != 13 { lane.errors["wrong body", default: 0] += 1 }
                if exchange.metrics.attempts != 1 { lane.resent += 1 }
            } catch {
                lane.errors["\(error)", default: 0] += 1
            }
        }
        return lane
    }

    /// Returns the number of connections that nginx has accepted by its own count.
    private func accepted(_ control: HTTPSession, _ url: HTTPURL) async throws -> Int {
        let text = try await control.text(url)
        let lines = text.split(separator: "\n")
        guard lines.count > 2, let number = lines[2].split(separator: " ").first.flatMap({ Int($0) }) else {
            throw SoakFailure("nginx reports no counts: \(text)")
        }
        return number
    }
}
