import MartletTesting

extension OriginOptions {
    /// An address of loopback for one test alone.
    ///
    /// The port of an origin on 127.0.0.1 that has stopped may be given to another test's at any moment; a port of an
    /// address that nobody else binds stays free.
    static func ownAddress(_ number: Int) -> String { "127.0.70.\(number)" }

    /// A plain origin on such an address; by default with a port that the kernel chooses.
    static func onOwnAddress(_ number: Int, port: Int = 0) -> OriginOptions {
        OriginOptions(binding: .address(ownAddress(number), port: port))
    }
}
