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
