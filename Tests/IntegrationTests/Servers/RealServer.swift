/// A third-party server, which the tests start on separate ports and end.
protocol RealServer: Sendable {
    /// The directory with its files, configuration and logs.
    var directory: TemporaryDirectory { get }
    /// The running program.
    var child: ChildProcess { get }
    /// Its log so far, for failure messages.
    var log: String { get }
}

extension RealServer {
    /// The output of the program.
    var log: String { child.output }

    /// Ends the server and deletes its directory. Returns when both have happened.
    func stop() async {
        await child.stop()
        directory.remove()
    }

    /// Runs `body` with the server and ends the server, however `body` ends.
    ///
    /// - Throws: the error of `body`, with the server's log.
    func whileRunning<Value>(_ body: (Self) async throws -> Value) async throws -> Value {
        do {
            let value = try await body(self)
            await stop()
            return value
        } catch {
            let log = String(log.suffix(4_000))
            await stop()
            throw ServerFailure(program: "\(Self.self)", reason: "\(error)", log: log)
        }
    }

    /// Starts a program that listens on `portCount` ports.
    ///
    /// Another process may take a port between the choice and its use: the start is tried three times.
    ///
    /// - Parameter launch: returns the program to start, for the chosen ports.
    /// - Returns: the child and its ports, all of them listening.
    static func startListening(
        program: String, portCount: Int, in directory: TemporaryDirectory, input: Int32? = nil,
        launch: (_ ports: [UInt16]) throws -> [String]
    ) async throws -> (child: ChildProcess, ports: [UInt16]) {
        try await StartGate.shared.whileInside {
            try await startInside(
                program: program, portCount: portCount, in: directory, input: input, launch: launch)
        }
    }

    private static func startInside(
        program: String, portCount: Int, in directory: TemporaryDirectory, input: Int32?,
        launch: (_ ports: [UInt16]) throws -> [String]
    ) async throws -> (child: ChildProcess, ports: [UInt16]) {
        var attempt = 1
        while true {
            let ports = FreePorts.draw(portCount)
            let arguments = try launch(ports)
            let child = try await ChildProcess.start(
                program, arguments, in: directory.path, input: input,
                outputPath: directory.appending("output.log"))
            do {
                try await child.wait(for: "listening") {
                    try Set(ports).isSubset(of: ListeningSockets.ports())
                }
                return (child, ports)
            } catch {
                await child.stop()
                attempt += 1
                if attempt > 3 || error is CancellationError {
                    directory.remove()
                    throw error
                }
            }
        }
    }
}
