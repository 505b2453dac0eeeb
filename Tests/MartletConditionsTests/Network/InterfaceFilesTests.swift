import FoundationEssentials
@testable import MartletConditions
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

        func make(_ directory: String) throws {
            try FileManager.default.createDirectory(
                atPath: "\(path)/class/net/\(directory)", withIntermediateDirectories: true)
        }

        func write(_ text: String, to file: String) throws {
            try Data(text.utf8).write(to: URL(filePath: "\(path)/class/net/\(file)"))
        }
    }

    @Test(
        "A directory or link phy80211 or wireless marks the interface as wireless",
        arguments: ["phy80211", "wireless"])
    func wireless(_ mark: String) throws {
        let directory = Directory()
        try directory.make("wlan0/\(mark)")
        try directory.make("eth0")
        #expect(InterfaceTraits(of: "wlan0", index: 3, sysfs: directory.path).isWireless)
        #expect(!InterfaceTraits(of: "eth0", index: 4, sysfs: directory.path).isWireless)
    }

    @Test("The device type is read from uevent")
    func deviceType() throws {
        let directory = Directory()
        try directory.make("wwan0")
        try directory.write("DEVTYPE=wwan\nINTERFACE=wwan0\nIFINDEX=5\n", to: "wwan0/uevent")
        #expect(InterfaceTraits(of: "wwan0", index: 5, sysfs: directory.path).deviceType == "wwan")
    }

    @Test("Files of an interface with the same name in another namespace are ignored")
    func otherNamespace() throws {
        let directory = Directory()
        try directory.make("eth0/wireless")
        try directory.write("4\n", to: "eth0/ifindex")
        #expect(InterfaceTraits(of: "eth0", index: 4, sysfs: directory.path).isWireless)
        #expect(!InterfaceTraits(of: "eth0", index: 3, sysfs: directory.path).isWireless)
    }

    @Test(
        "A name that is a path or has no directory has no traits",
        arguments: ["", ".", "..", "../wlan0", "a/b", "a\u{0}b", "none"])
    func names(_ name: String) throws {
        let directory = Directory()
        try directory.make("wireless")
        #expect(
            InterfaceTraits(of: name, index: 1, sysfs: "\(directory.path)/class/net/..")
                == InterfaceTraits())
        #expect(InterfaceTraits(of: name, index: 1, sysfs: directory.path) == InterfaceTraits())
    }
}
