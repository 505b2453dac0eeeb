import Martlet

/// The samples of the page about following the network, compiled; a test compares the two texts.
enum NetworkMonitoringSamples {
    static func following() async {
        for await path in NetworkMonitor.system {
            switch path.status {
            case .satisfied:
                let names = path.interfaces.map(\.name)
                print("online by", names, path.isExpensive ? "expensive" : "")
            case .unsatisfied: print("offline")
            case .unknown: print("the kernel does not say")
            }
        }
    }

    static func corrected() -> NetworkMonitor {
        var options = NetworkMonitor.Options()
        options.interfaces["ppp*"] = .init(kind: .mobile)
        options.interfaces["wwan0"] = .init(isExpensive: false)
        let monitor = NetworkMonitor(options)
        return monitor
    }

    static func ofSession() -> HTTPSession {
        var configuration = SessionConfiguration.default
        configuration.networkMonitor = .system
        configuration.concurrency = ConcurrencyPolicy()
        let session = HTTPSession(configuration: configuration)
        return session
    }

    static func metered(_ session: HTTPSession, _ request: HTTPRequest) async throws -> HTTPExchange {
        var configuration = session.configuration
        configuration.meteredNetworks = .denied
        let backup = try await session.send(
            request, options: .init { $0.meteredNetworks = .waits })
        return backup
    }

    static func ofHost(_ session: HTTPSession, _ badge: Badge) async throws {
        let api = try session.host("https://api.example.com/v2")
        for await state in api.reachability() { badge.show(state.isReachable) }

        let url = try HTTPURL("https://api.example.com/")
        let now = await NetworkMonitor.system.currentReachability(
            of: url, probe: .connection)
        print(now)  // reachable at 192.0.2.7 by wlan0 (wifi)
    }

    struct Badge {
        func show(_ isOn: Bool) {}
    }

    // Coming from AFNetworking and MKNetworkKit.

    static func fromAFNetworking() async {
        for await path in NetworkMonitor.system {
            print(path.status, path.kind == .mobile ? "via WWAN" : "via WiFi")
        }
    }
}
