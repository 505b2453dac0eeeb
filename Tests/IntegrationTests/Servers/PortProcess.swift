/// A running program that listens on one port.
struct PortProcess: Sendable {
    /// The directory of its files.
    let directory: TemporaryDirectory
    /// The running program.
    let child: ChildProcess
    /// The port on 127.0.0.1.
    let port: UInt16
}
