/// A running program that listens on one port.
struct PortProcess: Sendable {
    /// The directory of its own.
    let directory: TemporaryDirectory
    /// The program.
    let child: ChildProcess
    /// Where it listens, on 127.0.0.1.
    let port: UInt16
}
