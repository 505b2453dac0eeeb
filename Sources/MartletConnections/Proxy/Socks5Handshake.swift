import MartletTransport

/// Runs a ``Socks5Machine`` on a connection to a proxy.
struct Socks5Handshake {
    let machine: Socks5Machine
    /// When the tunnel must stand.
    let deadline: MonotonicTime

    /// Exchanges bytes until the tunnel stands; not a byte of it is read. The stream is left open.
    func run(on stream: any ByteStream) async throws(ProxyFault) {
        var machine = machine
        var effects = machine.start()
        while true {
            let bytes: [UInt8]?
            do throws(TransportError) {
                try await stream.send(effects.send, until: deadline)
                if machine.isEstablished { return }
                bytes = try await stream.receive(atMost: machine.wantedByteCount, until: deadline)
            } catch {
                throw .lost(error)
            }
            guard let bytes else {
                guard let fault = machine.receiveEndOfStream() else { return }
                throw .socks(fault)
            }
            do throws(Socks5Fault) {
                effects = try machine.receive(bytes)
            } catch {
                throw .socks(error)
            }
        }
    }
}
