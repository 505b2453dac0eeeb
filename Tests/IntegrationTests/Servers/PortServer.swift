/// A server that listens on one port.
protocol PortServer: RealServer {
    /// The program, with its port and its directory.
    var process: PortProcess { get }

    init(process: PortProcess)
}

extension PortServer {
    var directory: TemporaryDirectory { process.directory }
    var child: ChildProcess { process.child }
    /// Where it listens, without TLS.
    var port: UInt16 { process.port }

    /// Starts a program that is to listen on one port. It does when this returns; the caller has to `stop()` it.
    ///
    /// - Parameter launch: what to start, from the port chosen for it.
    static func listening(
        _ program: String, in directory: TemporaryDirectory, launch: (_ port: UInt16) throws -> [String]
    ) async throws -> Self {
        let (child, ports) = try await startListening(program: program, portCount: 1, in: directory) {
            ports in
            try launch(ports[0])
        }
        return Self(process: PortProcess(directory: directory, child: child, port: ports[0]))
    }
}
