import CLinux
import Glibc

/// The files in which the kernel tells what interfaces are: `/sys`, or a folder that looks like it.
package struct InterfaceFiles: Hashable, Sendable {
    /// The folder, `/sys` by default.
    package let root: String

    /// A folder, which need not exist.
    package init(root: String = "/sys") {
        self.root = root
    }

    /// What they say of an interface.
    ///
    /// The folder may show another network namespace than the process is in, whose interfaces may have the same names: what
    /// has another number there says nothing.
    /// - Parameter name: The kernel's names hold no slash; others have no traits.
    package func traits(of name: String, index: UInt32) -> InterfaceTraits {
        guard !name.isEmpty, name != ".", name != "..", !name.utf8.contains(where: { $0 == 0x2F || $0 == 0 })
        else {
            return InterfaceTraits()
        }
        let folder = "\(root)/class/net/\(name)"
        if let number = InterfaceFiles.bytes(of: "\(folder)/ifindex") {
            let text = String(decoding: number.prefix { $0 != 0x0A }, as: UTF8.self)
            guard UInt32(text) == index else { return InterfaceTraits() }
        }
        let event = InterfaceFiles.bytes(of: "\(folder)/uevent") ?? []
        return InterfaceTraits(
            isWireless: InterfaceFiles.exists("\(folder)/phy80211")
                || InterfaceFiles.exists("\(folder)/wireless"),
            deviceType: InterfaceTraits.deviceType(inEvent: event))
    }

    private static func exists(_ path: String) -> Bool {
        unsafe access(path, F_OK) == 0
    }

    /// The first 4 KiB of a file: such files have some dozen bytes, and others are none of ours.
    private static func bytes(of path: String) -> [UInt8]? {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        let (_, code) = Socket.retrying {
            unsafe withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
                let count = unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
                if count > 0 { bytes = unsafe Array(buffer.prefix(count)) }
                return count
            }
        }
        return code == 0 ? bytes : nil
    }
}
