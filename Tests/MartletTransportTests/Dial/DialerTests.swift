import MartletTestSupport
import Synchronization
import Testing

@testable import MartletTransport

@Suite("Dialer")
struct DialerTests {
    /// A connector that connects on command, even after its task was cancelled.
    private final class SlowConnector: StreamConnector {
        let entered = OneShot<Void>()
        let released = OneShot<Void>()
        let stream: any ByteStream
        private let loop: EventLoop

        init(_ stream: any ByteStream, loop: EventLoop) {
            self.stream = stream
            self.loop = loop
        }

        func connect(to destination: Destination) async throws(TransportError) -> any ByteStream {
            entered.fulfill(())
            _ = await released.wait(until: .distantFuture, on: loop)
            return stream
        }
    }

    @Test(
        "The addresses for a SOCKS proxy have the families, the order and the number of the options",
        arguments: [
            (HappyEyeballsOptions(), ["::1", "127.0.0.1", "::2", "127.0.0.2"]),
            (HappyEyeballsOptions(families: .ipv4Only), ["127.0.0.1", "127.0.0.2"]),
            (HappyEyeballsOptions(families: .ipv6Only, addressLimit: 1), ["::1"]),
            (HappyEyeballsOptions(firstFamily: .ipv4), ["127.0.0.1", "::1", "127.0.0.2", "::2"]),
        ])
    func addresses(race: HappyEyeballsOptions, expected: [String]) async throws {
        let resolved = ["127.0.0.1", "127.0.0.2", "::1", "::2"].compactMap { SocketAddress(literal: $0, port: 80) }
        let settings = DialSettings(overrides: [Endpoint(host: "a.example", port: 80): resolved], race: race)
        let dialer = Dialer(settings: settings, loop: EventLoop.sharedOrStalled)
        let found = try await dialer.addresses(
            of: Destination(isSecure: false, host: "a.example", port: 80), until: .distantFuture)
        #expect(found == expected.compactMap { SocketAddress(literal: $0, port: 80) })
    }

    // A dial that was cancelled at the moment of its success once returned an interrupted connection. The next queued
    // request received it and failed as cancelled.
    @Test("A cancelled dial leaves no socket open, even if the connection succeeded")
    func cancelledSuccess() async throws {
        let loop = EventLoop.sharedOrStalled
        let (stream, peer) = MemoryStream.pair(loop: loop)
        let connector = SlowConnector(stream, loop: loop)
        let dialer = Dialer(settings: DialSettings(connector: Identified(connector)), loop: loop)
        let dial = Task { () -> DialError? in
            do throws(DialError) {
                _ = try await dialer.dial(
                    Destination(isSecure: false, host: "mock.example", port: 80), until: .distantFuture)
                return nil
            } catch {
                return error
            }
        }
        _ = await connector.entered.wait(until: .distantFuture, on: loop)
        dial.cancel()
        connector.released.fulfill(())
        let error = try #require(await dial.value)
        guard case .interrupted = error.cause else {
            Issue.record("\(error)")
            return
        }
        // Cancelling does not wait for the connector, whose stream may be closed after the error.
        #expect(await eventually { peer.probe() == .unusable })
    }
}
