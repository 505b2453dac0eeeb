import MartletTesting

extension OriginOptions {
    /// Returns a loopback address for one test.
    ///
    /// On 127.0.0.1 the port of a stopped origin can be assigned to another test at any moment. On an address of its
    /// own the port stays free.
    static func ownAddress(_ number: Int) -> String { "127.0.70.\(number)" }

    /// Returns the options of a plain origin on such an address; the default port is chosen by the kernel.
    static func onOwnAddress(_ number: Int, port: Int = 0) -> OriginOptions {
        OriginOptions(binding: .address(ownAddress(number), port: port))
    }
}
