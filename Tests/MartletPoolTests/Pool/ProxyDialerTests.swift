@testable import MartletPool
import MartletTransport
import MartletWire
import Testing

@Suite("Dials through proxies")
struct ProxyDialerTests {
    @Test(
        "A port out of range is an error, and not another port of the server",
        arguments: [ProxyNameResolution.resolvedRemotely, .resolvedLocally], [-1, 65_536, 70_000, .max])
    func portOutOfRange(names: ProxyNameResolution, port: Int) async throws {
        let settings = DialSettings(redirections: [ConnectOverride(toPort: port)])
        let dial = ProxyDialer(
            dialer: Dialer(settings: settings, loop: try EventLoop.shared.get()),
            proxy: ProxyServer(kind: .socks5(names), host: "127.0.0.1", port: 1),
            destination: Destination(isSecure: false, host: "name.invalid", port: 80), limits: .default,
            deadline: MonotonicTime.now().advanced(by: .seconds(60)))
        let error = try await #require(throws: ExchangeError.self) { _ = try await dial.run() }
        guard case .transport(.resolution(let cause)) = error.cause else {
            Issue.record("\(error.cause)")
            return
        }
        #expect(cause.message == "\(port) is not a port number")
    }
}
