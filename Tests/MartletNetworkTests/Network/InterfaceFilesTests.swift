import FoundationEssentials
@testable import MartletNetwork
import MartletTransport
import Testing

@Suite("Interface files in sysfs")
struct InterfaceFilesTests {
    /// A directory with the layout of `/sys`.
    private final class Directory: Sendable {
        let path = FileManager.default.temporaryDirectory.path + "/martlet-sysfs-\(UUID().uuidString)"

        deinit {
            try? FileManager.default.removeItem(atPath: path)
        }

        func make(_ folder: String) throws {
            try FileManager.default.createDirectory(
                atPath: "\(path)/class/net/\(folder)", withIntermediateDirectories: true)
        }

        func write(_ text: String, to file: String) throws {
            try Data(text.utf8).write(to: URL(filePath: "\(path)/class/net/\(file)"))
        }
    }

    @Test(
        "A directory or link phy80211 or wireless marks the interface as wireless",
        arguments: ["phy80211", "wireless"])
    func wireless(_ mark: String) throws {
        let folder = Directory()
        try folder.make("wlan0/\(mark)")
        try folder.make("eth0")
        #expect(InterfaceTraits(of: "wlan0", index: 3, sysfs: folder.path).isWireless)
        #expect(!InterfaceTraits(of: "eth0", index: 4, sysfs: folder.path).isWireless)
    }

    @Test("The device type is read from uevent")
    func deviceType() throws {
        let folder = Directory()
        try folder.make("wwan0")
        try folder.write("DEVTYPE=wwan\nINTERFACE=wwan0\nIFINDEX=5\n", to: "wwan0/uevent")
        #expect(InterfaceTraits(of: "wwan0", index: 5, sysfs: folder.path).deviceType == "wwan")
    }

    @Test("Files of an interface with the same name in another namespace are ignored")
    func otherNamespace() throws {
        let folder = Directory()
        try folder.make("eth0/wireless")
        try folder.write("4\n", to: "eth0/ifindex")
        #expect(InterfaceTraits(of: "eth0", index: 4, sysfs: folder.path).isWireless)
        #expect(!InterfaceTraits(of: "eth0", index: 3, sysfs: folder.path).isWireless)
    }

    @Test(
        "A name that is a path or has no directory has no traits",
        arguments: ["", ".", "..", "../wlan0", "a/b", "a\u{0}b", "none"])
    func names(_ name: String) throws {
        let folder = Directory()
        try folder.make("wireless")
        #expect(
            InterfaceTraits(of: name, index: 1, sysfs: "\(folder.path)/class/net/..")
                == InterfaceTraits())
        #expect(InterfaceTraits(of: name, index: 1, sysfs: folder.path) == InterfaceTraits())
    }
}
