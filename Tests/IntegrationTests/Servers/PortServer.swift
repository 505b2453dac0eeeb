/// A server that listens on one port.
protocol PortServer: RealServer {
    /// The program, with its port and its directory.
    var process: PortProcess { get }

    init(process: PortProcess)
}

extension PortServer {
    var directory: TemporaryDirectory { process.directory }
    var child: ChildProcess { process.child }
    /// The port without TLS.
    var port: UInt16 { process.port }

    /// Starts a program that listens on one port when this returns; the caller has to `stop()` it.
    ///
    /// - Parameter launch: returns the program to start, for the chosen port.
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
